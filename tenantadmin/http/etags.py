"""Strong entity tags: 304 for a reader that has the document, 409 for a writer that has an older one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.http import parse_etags
from rest_framework.response import Response

from tenantadmin.core.errors import Conflict

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.request import Request


def holds(request: HttpRequest | Request, etag: str) -> bool:
    """Tell whether the caller has what ``etag`` names already (``If-None-Match``)."""
    header = request.META.get("HTTP_IF_NONE_MATCH")
    if header is None:
        return False
    held = parse_etags(header)
    return "*" in held or any(tag.removeprefix("W/") == etag for tag in held)


def not_modified(request: Request, etag: str) -> Response | None:
    """Return the 304 for a caller that holds ``etag`` already, else None."""
    return Response(status=304, headers={"ETag": etag}) if holds(request, etag) else None


def require_match(request: Request, etag: str) -> None:
    """Refuse a write whose ``If-Match`` names another state than the stored one.

    Raises:
        Conflict: the caller's copy is stale.
    """
    header = request.headers.get("If-Match")
    if header is None:
        return
    held = parse_etags(header)
    if "*" not in held and etag not in held:
        raise Conflict
