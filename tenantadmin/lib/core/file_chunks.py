"""The content of a file in chunks, to send files of any size in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from contextlib import AbstractContextManager
    from typing import IO

_CHUNK_BYTES = 1 << 16


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
