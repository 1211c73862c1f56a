"""Responses of any length, in bounded memory: rows and files are sent as they are read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain, islice
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final

from django.http import StreamingHttpResponse
from django.utils.cache import patch_vary_headers
from django.utils.text import compress_sequence

from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.spreadsheets import csv_bytes
from tenantadmin.lib.core.timestamps import format_timestamp
from tenantadmin.lib.http.bodies import accepts_gzip

if TYPE_CHECKING:
    from rest_framework.request import Request

    from tenantadmin.lib.core.structs import JsonStruct

_PIECE_ROWS: Final = 500


def stream_csv(
    name: str, header: Sequence[str], rows: Iterable[Sequence[object]], *, for_people: bool = True
) -> StreamingHttpResponse:
    """Return a response with the file ``name``. It reads ``rows`` while it is sent."""
    return StreamingHttpResponse(
        _pieces(chain([header], rows), for_people=for_people),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _pieces(rows: Iterable[Sequence[object]], *, for_people: bool) -> Iterator[bytes]:
    left = iter(rows)
    while piece := list(islice(left, _PIECE_ROWS)):
        yield csv_bytes(piece, for_people=for_people, as_text=_text)


def _text(value: object) -> str:
    return format_timestamp(value) if isinstance(value, dt.datetime) else str(value)


#: A list of this many items is compressed.
_COMPRESSED_FROM: Final = 20
#: Number of items that are rendered at a time.
_BATCH: Final = 500
#: Bytes of items that are kept in memory; more are kept in a temporary file.
_MAX_SPOOLED: Final = 1 << 20
_ITEMS: Final = b'"items":['
#: Only the member of the links can have this text: in a JSON string, quotation marks are escaped.
_NO_ITEMS: Final = _ITEMS + b"]"


def stream_links(
    answer: JsonStruct, items: Iterable[JsonStruct], *, headers: Mapping[str, str] | None = None
) -> StreamingHttpResponse:
    """Return a response with ``answer``, and add ``items`` to its links while it is sent."""
    return StreamingHttpResponse(
        _write(answer, iter(items)), content_type="application/json", headers=dict(headers or {})
    )


def compress(request: Request, response: StreamingHttpResponse, *, count: int) -> StreamingHttpResponse:
    """Compress a long list for a caller that takes gzip.

    For a short one, as of most polls, it takes more time than it saves.
    """
    patch_vary_headers(response, ["Accept-Encoding"])
    if count >= _COMPRESSED_FROM and accepts_gzip(request):
        content: Any = response.streaming_content
        response.streaming_content = compress_sequence(content)
        response["Content-Encoding"] = "gzip"
        # The compressed bytes differ.
        response["ETag"] = f"W/{response['ETag']}"
    return response


def _write(answer: JsonStruct, items: Iterator[JsonStruct]) -> Iterator[bytes]:
    head, tail = dump_json(answer).split(_NO_ITEMS, 1)
    yield head + _ITEMS
    separator = b""
    while batch := list(islice(items, _BATCH)):
        yield separator + dump_json(batch)[1:-1]
        separator = b","
    yield b"]" + tail


def stream_documents(
    answer: Any,
    name: str,
    documents: Iterable[tuple[JsonStruct, JsonStruct | Mapping[str, Any]]],
    *,
    headers: Mapping[str, str] | None = None,
) -> StreamingHttpResponse:
    """Return a response with ``answer``, whose links have no items and whose list ``name`` is empty.

    Both lists are filled with ``documents``, pairs of item and document, which are read while the response is
    sent. The first member of ``answer`` is ``_links``.
    """
    return StreamingHttpResponse(
        _write_documents(answer, name, iter(documents)),
        content_type="application/json",
        headers=dict(headers or {}),
    )


def _write_documents(
    answer: Any, name: str, documents: Iterator[tuple[JsonStruct, JsonStruct | Mapping[str, Any]]]
) -> Iterator[bytes]:
    head, tail = dump_json(answer).split(_NO_ITEMS, 1)
    member = dump_json(name) + b":["
    before, after = tail.split(b"," + member + b"]", 1)
    # Keep the items until the documents are sent, so that both come from one read of the database.
    with SpooledTemporaryFile(max_size=_MAX_SPOOLED) as items:
        yield b"{" + member
        separator = b""
        while batch := list(islice(documents, _BATCH)):
            yield separator + dump_json([document for _, document in batch])[1:-1]
            items.write(separator + dump_json([one for one, _ in batch])[1:-1])
            separator = b","
        yield b"]," + head.removeprefix(b"{") + _ITEMS
        items.seek(0)
        yield from iter(partial(items.read, _MAX_SPOOLED), b"")
        yield b"]" + before + after


_CHUNK_BYTES: Final = 1 << 16


class FileChunks:
    """The content of a file in chunks, for a `StreamingHttpResponse`, which closes it.

    The constructor opens the file and reads the first chunk, so an error there becomes an error response. A
    later error, or a file that does not have ``size`` bytes, ends the connection. Send ``size`` as
    Content-Length too, so that the client notices that the content is incomplete.
    """

    def __init__(self, opening: AbstractContextManager[IO[bytes]], *, size: int) -> None:
        self._chunks = _read(opening, size)
        self._first = next(self._chunks, b"")

    def __iter__(self) -> Iterator[bytes]:
        yield self._first
        yield from self._chunks

    def close(self) -> None:
        """Close the file, even if it was not read to its end."""
        self._chunks.close()


def _read(opening: AbstractContextManager[IO[bytes]], size: int) -> Generator[bytes]:
    with opening as stream:
        while size and (chunk := stream.read(min(_CHUNK_BYTES, size))):
            size -= len(chunk)
            yield chunk
        if size or stream.read(1):
            raise EOFError("the file changed while it was sent")
