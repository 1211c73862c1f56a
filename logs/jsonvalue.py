"""Check whether a stream is one JSON value (RFC 8259)."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from typing import IO

_CHUNK_BYTES: Final = 1 << 16
_MAX_BYTES: Final = 2 << 20
#: Half of a surrogate pair, which the grammar allows and msgspec does not.
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
#: Where msgspec's messages name the offset of an error.
_OFFSET: Final = re.compile(r"\(byte (\d+)\)$")
_check: Final = msgspec.json.Decoder(msgspec.Raw).decode


def is_one_value(stream: IO[bytes]) -> bool:
    """Return True if the rest of ``stream`` is one JSON value in UTF-8. Stop reading at the first error.

    If the first 2 MiB are the beginning of a value, the rest is not read, as it would have to be in memory.
    """
    body = bytearray()
    utf8 = getincrementaldecoder("utf-8")()
    parse_at = 0
    try:
        while len(body) < _MAX_BYTES and (chunk := stream.read(_CHUNK_BYTES)):
            utf8.decode(chunk)
            body += chunk
            if len(body) >= parse_at:
                if _is_value(body) is False:
                    return False
                # Parsing starts at the beginning, so twice as much must be there.
                parse_at = 2 * len(body)
        if len(body) >= _MAX_BYTES:
            return _is_value(body) is not False
        utf8.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return _is_value(body) is True


def _is_value(body: bytearray) -> bool | None:
    """Return whether ``body`` is a JSON value; None if it is the beginning of one."""
    try:
        _check(_SURROGATE.sub(rb"\\u0000", body))
    except RecursionError:
        # It is nested too deeply to be checked.
        return True
    except msgspec.DecodeError as error:
        message = str(error)
        offset = _OFFSET.search(message)
        is_at_end = offset is None or int(offset[1]) == len(body)
        return None if is_at_end and "trailing" not in message else False
    return True
