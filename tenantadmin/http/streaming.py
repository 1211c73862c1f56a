"""Lists and files of any length in bounded memory: sent as they are read."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from django.http import StreamingHttpResponse

from tenantadmin.core.rendering import dump_json
from tenantadmin.http.hal import link

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import IO

_BATCH = 500
_CHUNK = 1 << 16


class FileChunks:
    """The content of a file in chunks, for a `StreamingHttpResponse`, which closes it.

    The file is opened and its first chunk read at once: what fails until then is answered as an error. Later
    failures, and a file that has not ``size`` bytes, end the connection: send ``size`` as Content-Length too,
    or the client takes what it has for the whole.
    """

    def __init__(self, opening: AbstractContextManager[IO[bytes]], *, size: int) -> None:
        self._chunks = _read(opening, size)
        self._first = next(self._chunks, b"")

    def __iter__(self) -> Iterator[bytes]:
        yield self._first
        yield from self._chunks

    def close(self) -> None:
        """Close the file, read to its end or not."""
        self._chunks.close()


def _read(opening: AbstractContextManager[IO[bytes]], size: int) -> Generator[bytes]:
    with opening as stream:
        while size and (chunk := stream.read(min(_CHUNK, size))):
            size -= len(chunk)
            yield chunk
        if size or stream.read(1):
            raise EOFError("the file changed while it was sent")


def stream_links(
    *,
    self_href: str,
    parent: str,
    items: Iterable[Mapping[str, Any]],
    more: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> StreamingHttpResponse:
    """Answer ``{_links: {self, parent, items}, …more}`` with ``items`` taken one after the other."""
    return StreamingHttpResponse(
        _write(self_href=self_href, parent=parent, items=iter(items), more=more or {}),
        content_type="application/json",
        headers=dict(headers or {}),
    )


def _write(
    *, self_href: str, parent: str, items: Iterator[Mapping[str, Any]], more: Mapping[str, Any]
) -> Iterator[bytes]:
    head = dump_json({"self": link(self_href), "parent": link(parent)})
    yield b'{"_links":' + head[:-1] + b',"items":['
    separator = b""
    while batch := list(islice(items, _BATCH)):
        yield separator + dump_json(batch)[1:-1]
        separator = b","
    tail = dump_json(dict(more))[1:]
    yield b"]}" + (b"," if more else b"") + tail
