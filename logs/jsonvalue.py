"""Whether bytes are one JSON value (RFC 8259)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import ijson

if TYPE_CHECKING:
    from typing import BinaryIO

_PIECE: Final = 1 << 18


def is_one_value(stream: BinaryIO) -> bool:
    """Whether the rest of ``stream`` is one JSON value in UTF-8; reads no more of it once it is not.

    Holds a piece of it and the longest string, and makes nothing of what it reads.
    """
    try:
        for _ in ijson.basic_parse(stream, buf_size=_PIECE):
            pass
    except (ijson.JSONError, UnicodeDecodeError):
        return False
    return True
