"""Check whether a stream is one JSON value (RFC 8259)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import ijson

if TYPE_CHECKING:
    from typing import IO

_CHUNK_BYTES: Final = 1 << 18


def is_one_value(stream: IO[bytes]) -> bool:
    """Return True if the rest of ``stream`` is one JSON value in UTF-8. Stop reading at the first error.

    Only a chunk of the stream and its longest string are in memory; no value is built.
    """
    try:
        for _ in ijson.basic_parse(stream, buf_size=_CHUNK_BYTES):
            pass
    except (ijson.JSONError, UnicodeDecodeError):
        return False
    return True
