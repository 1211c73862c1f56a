"""Answer 304 to a reader who has the current document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.http import parse_etags
from rest_framework.response import Response

if TYPE_CHECKING:
    from rest_framework.request import Request


def not_modified(request: Request, etag: str) -> Response | None:
    """Return 304 if ``If-None-Match`` has ``etag``: the caller has the current document. Otherwise None."""
    tags = parse_etags(request.META.get("HTTP_IF_NONE_MATCH", ""))
    if "*" in tags or any(tag.removeprefix("W/") == etag for tag in tags):
        return Response(status=304, headers={"ETag": etag})
    return None
