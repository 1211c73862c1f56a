"""Whether bytes are one JSON value (RFC 8259). Makes no objects of them, and does not hold all of them."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOT_MARKS: Final = bytes(set(range(256)) - set(b'[]{}"'))
#: What a number may have been cut in; of words it takes an end away, and they stay cut.
_NUMBER: Final = b"+-.0123456789eE"
_SURROGATE: Final = re.compile(rb"\\u[dD][89abcdefABCDEF]")
_CUT_OFF: Final = "Input data was truncated"
_decode: Final = msgspec.json.Decoder(msgspec.Raw).decode


def is_one_value(pieces: Iterable[bytes]) -> bool:
    """Whether ``pieces`` together are one JSON value in UTF-8; takes no more of them once they are not.

    Holds about two pieces, or the longest string or run of blanks where that is longer. A value nested deeper
    than Python recurses, about 1,000 levels, is none.
    """
    utf8 = codecs.getincrementaldecoder("utf-8")()
    opened = b""  # the containers around what is held, which begins behind a comma
    held: list[bytes] = []
    size = enough = 0
    try:
        for piece in pieces:
            utf8.decode(piece)
            held.append(piece)
            size += len(piece)
            if size < enough:
                continue
            held = [b"".join(held)]
            text = _simplify(held[0])
            if not _may_go_on(_reopen(opened) + text):
                return False
            comma = _last_comma(text)
            if comma < 0:
                enough = 2 * size
                continue
            opened = _still_open(opened + _brackets(text[:comma]))
            held = [held[0][comma + 1 :]]
            size, enough = len(held[0]), 0
        utf8.decode(b"", final=True)
        _decode(_reopen(opened) + _simplify(b"".join(held)))
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return False
    return True


def _simplify(text: bytes) -> bytes:
    """As long and as valid, without backslashes that hide a quote, and without surrogates, lone or not.

    What replaces them is as wrong outside of a string as they are.
    """
    text = text.replace(rb"\\", b"__").replace(rb"\"", b"__")
    return _SURROGATE.sub(rb"\\u00", text) if rb"\ud" in text or rb"\uD" in text else text


def _may_go_on(text: bytes) -> bool:
    """Whether a JSON value begins with ``text``, or is it."""
    try:
        _decode(text.rstrip(_NUMBER))
    except msgspec.DecodeError as error:
        return str(error) == _CUT_OFF
    return True


def _last_comma(text: bytes) -> int:
    """The place of the last comma outside of strings, or -1."""
    quotes = text.count(b'"')
    end = len(text)
    while (comma := text.rfind(b",", 0, end)) >= 0:
        quotes -= text.count(b'"', comma, end)
        if quotes % 2 == 0:
            return comma
        end, quotes = text.rfind(b'"', 0, comma), quotes - 1  # before the string that it lies in
    return -1


def _brackets(text: bytes) -> bytes:
    """The brackets outside of strings."""
    # Taking two neighbouring quotes away leaves everything else inside or outside as it was.
    marks = text.translate(None, _NOT_MARKS).replace(b'""', b"")
    return b"".join(marks.split(b'"')[::2])


def _still_open(brackets: bytes) -> bytes:
    while (fewer := brackets.replace(b"[]", b"").replace(b"{}", b"")) != brackets:
        brackets = fewer
    return brackets


def _reopen(containers: bytes) -> bytes:
    """A text that ends behind a comma in these containers, outermost first; empty for none."""
    if not containers:
        return b""
    around, inner = containers[:-1], containers[-1:]
    return around.replace(b"{", b'{"":') + (b"[0," if inner == b"[" else b'{"":0,')
