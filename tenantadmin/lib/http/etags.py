"""Strong entity tags: 304 if a reader has the current document, 409 if a writer has an older one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.http import parse_etags
from rest_framework.response import Response

from tenantadmin.lib.core.errors import Conflict

if TYPE_CHECKING:
    from rest_framework.request import Request


def not_modified(request: Request, etag: str) -> Response | None:
    """Return 304 if ``If-None-Match`` has ``etag``: the caller has the current document. Otherwise None."""
    tags = parse_etags(request.META.get("HTTP_IF_NONE_MATCH", ""))
    if "*" in tags or any(tag.removeprefix("W/") == etag for tag in tags):
        return Response(status=304, headers={"ETag": etag})
    return None


def require_match(request: Request, etag: str) -> None:
    """Refuse a write if ``If-Match`` does not have ``etag``, the tag of the stored document.

    Raises:
        Conflict: the caller's copy is stale.
    """
    header = request.headers.get("If-Match")
    if header is None:
        return
    tags = parse_etags(header)
    if "*" not in tags and etag not in tags:
        raise Conflict
