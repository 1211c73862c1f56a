"""A document as an answer: 404 without data, 304 for a reader that has it, in chunks where it is large."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, BinaryIO, Final

from django.http import StreamingHttpResponse
from rest_framework.response import Response

from analytics.store import read_document, read_etag
from analytics.userdocs import find_user_source, user_document
from tenantadmin.http.errors import NotFound
from tenantadmin.http.etags import not_modified
from tenantadmin.objectstore import default_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from django.http import HttpResponseBase
    from rest_framework.request import Request

    from analytics.models import Kind

_NO_DATA: Final = "There is no log entry in this period."
_CHUNK: Final = 1 << 16


def answer_stored(request: Request, *, tenant: UUID, kind: Kind, period: str) -> HttpResponseBase:
    """Answer with a tenant's stored document as it stands; its body is read only where it is sent.

    Raises:
        NotFound: the period has no entry.
    """
    etag = read_etag(tenant=tenant, kind=kind, period=period)
    if etag is None:
        raise NotFound(_NO_DATA)
    unchanged = not_modified(request, etag)
    if unchanged is not None:
        return unchanged
    document = read_document(tenant=tenant, kind=kind, period=period)
    if document is None:
        raise NotFound(_NO_DATA)
    if not document.file:
        return Response(document.body, headers={"ETag": document.etag})
    with ExitStack() as opening:
        stream = opening.enter_context(default_store().open(document.file))
        return _send(stream, etag=document.etag, size=document.bytes, opened=opening.pop_all())


def answer_user(request: Request, *, tenant: UUID, user: str, period: str) -> HttpResponseBase:
    """Answer with a user's document, derived from the rollups where it is not remembered.

    Raises:
        NotFound: the user has no entry in the period.
    """
    source = find_user_source(tenant=tenant, user=user, period=period)
    if source is None:
        raise NotFound(_NO_DATA)
    # Who holds this tag was sent the document; who says "any" may never have been.
    held = request.headers.get("If-None-Match", "").strip()
    if held != "*" and (unchanged := not_modified(request, source.etag)) is not None:
        return unchanged
    document = user_document(default_store(), source)
    if document is None:
        raise NotFound(_NO_DATA)
    if isinstance(document, bytes):
        return not_modified(request, source.etag) or Response(document, headers={"ETag": source.etag})
    with ExitStack() as opening:
        opening.enter_context(document)
        size = document.seek(0, 2)
        document.seek(0)
        return not_modified(request, source.etag) or _send(
            document, etag=source.etag, size=size, opened=opening.pop_all()
        )


def _send(stream: BinaryIO, *, etag: str, size: int, opened: ExitStack) -> StreamingHttpResponse:
    def chunks() -> Iterator[bytes]:
        with opened:
            while chunk := stream.read(_CHUNK):
                yield chunk

    return StreamingHttpResponse(
        chunks(),
        content_type="application/json",
        headers={"ETag": etag, "Content-Length": str(size)},
    )
