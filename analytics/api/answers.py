"""Responses with summary documents: 404 without data, 304 if unchanged, large documents in chunks."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from django.http import StreamingHttpResponse
from rest_framework.response import Response

from analytics.summaries.store import read_document
from analytics.summaries.userdocs import find_user_source, user_document
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.file_chunks import FileChunks
from tenantadmin.lib.http.hal import not_modified
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponseBase
    from rest_framework.request import Request

    from analytics.models import Kind

_NO_DATA: Final = "There is no log entry in this period."


def answer_stored(request: Request, *, tenant: UUID, kind: Kind, period: str) -> HttpResponseBase:
    """Answer with a stored document.

    Raises:
        NotFound: the period has no entry.
    """
    document = read_document(tenant=tenant, kind=kind, period=period)
    if document is None:
        raise NotFound(_NO_DATA)
    unchanged = not_modified(request, document.etag)
    if unchanged is not None:
        return unchanged
    if not document.file:
        return Response(document.body, headers={"ETag": document.etag})
    return _send(default_store().open(document.file), etag=document.etag, size=document.bytes)


def answer_user(request: Request, *, tenant: UUID, user: str, period: str) -> HttpResponseBase:
    """Answer with a user's document from the cache, or compute it from the rollups.

    Raises:
        NotFound: the user has no entry in the period.
    """
    source = find_user_source(tenant=tenant, user=user, period=period)
    if source is None:
        raise NotFound(_NO_DATA)
    # A client that sends this tag has the document. A client that sends * may not have it.
    if_none_match = request.headers.get("If-None-Match", "").strip()
    if if_none_match != "*" and (unchanged := not_modified(request, source.etag)) is not None:
        return unchanged
    document = user_document(default_store(), source)
    if document is None:
        raise NotFound(_NO_DATA)
    unchanged = not_modified(request, source.etag)
    if isinstance(document, bytes):
        return unchanged or Response(document, headers={"ETag": source.etag})
    if unchanged is not None:
        document.close()
        return unchanged
    size = document.seek(0, 2)
    document.seek(0)
    return _send(document, etag=source.etag, size=size)


def _send(file: IO[bytes], *, etag: str, size: int) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        FileChunks(file, size=size),
        content_type="application/json",
        headers={"ETag": etag, "Content-Length": str(size)},
    )
