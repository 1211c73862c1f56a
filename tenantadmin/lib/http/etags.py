"""Answer 304 to a reader who has the current document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.response import Response

from tenantadmin.lib.core.rendering import names_etag

if TYPE_CHECKING:
    from rest_framework.request import Request


def not_modified(request: Request, etag: str) -> Response | None:
    """Return 304 if ``If-None-Match`` has ``etag``: the caller has the current document. Otherwise None."""
    header = request.META.get("HTTP_IF_NONE_MATCH")
    if header is not None and names_etag(header, etag):
        return Response(status=304, headers={"ETag": etag})
    return None
