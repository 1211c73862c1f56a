"""One JSON value or not, in whatever pieces it comes."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logs.jsonvalue import is_one_value

if TYPE_CHECKING:
    from typing import BinaryIO

TEXTS = st.text(st.sampled_from('ab"\\,[]{}:é測\n\t 1e-😀'), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def in_python(body: bytes) -> bool:
    """What RFC 8259's grammar says, which Python's own parser follows but for its constants."""

    def refuse(_: str) -> None:
        raise ValueError

    try:
        json.loads(body.decode(), parse_constant=refuse, parse_int=str, parse_float=str)
    except ValueError:
        return False
    return True


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """A value as it may be written: blanks, escapes or none."""
    indent, is_ascii = draw(st.sampled_from([None, 0, 1])), draw(st.booleans())
    text = json.dumps(draw(VALUES), ensure_ascii=is_ascii, indent=indent)
    return draw(st.sampled_from([b"", b" ", b"\r\n"])) + text.encode() + draw(st.sampled_from([b"", b"\t\n"]))


class Pieces:
    """A file that gives at most so many bytes at a time, and says where it was left."""

    def __init__(self, body: bytes, size: int) -> None:
        self.body, self.size = io.BytesIO(body), size

    def read(self, size: int = -1) -> bytes:
        return self.body.read(min(self.size, size))


def judged(body: bytes, size: int = 1 << 20) -> bool:
    return is_one_value(cast("BinaryIO", Pieces(body, size)))


SIZES = st.integers(1, 12)


@given(body=written(), size=SIZES)
def test_a_value_is_one_in_any_pieces(body: bytes, size: int) -> None:
    assert judged(body)
    assert judged(body, size)


@given(body=written(), other=written(), size=SIZES, data=st.data())
def test_what_is_damaged_or_goes_on_is_judged_as_by_python(
    body: bytes, other: bytes, size: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(body)))
    damage = data.draw(
        st.sampled_from([b"", b",", b"]", b"}", b'"', b"\\", b"0", b"\xff", b"[", b"\n", b"e"])
    )
    damaged = body[:at] + damage + body[at + data.draw(st.integers(0, 2)) :]

    # With a break at its end: a word or string that is cut behind the value is not looked at.
    for text in (damaged + b"\n", body + b"\n" + other + b"\n", body[:at] + b"\n"):
        assert judged(text, size) is in_python(text), text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"not json",
        b"\xff",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        b"NaN",
        b"01",
        b"1,",
        b"[1,]",
        b'{"a":1,}',
        b'"\x01"',
        rb'"\x"',
        rb'"\u12g4"',
        rb"\\",
        b"1 2",
        b'{"a" 1}',
        b"{1:2}",
        b"[1}",
        b"]",
        b"tru e",
    ],
)
def test_what_is_no_value(body: bytes) -> None:
    assert not judged(body)
    assert not judged(body, 1)


@pytest.mark.parametrize(
    "body", [b"1e999", rb'"\ud83d"', rb'"\uDBFF\\ud83d"', b"1" * 400, b"[" * 5000 + b"]" * 5000]
)
def test_values_that_are_no_python_objects_are_values(body: bytes) -> None:
    assert judged(body)
    assert judged(body, 3)


@pytest.mark.parametrize("first", [b'{"a":1}\n{"a"', b"not json", b"[1,]", b"1\n2\n3", b'{"a":"\xff', b"1,2"])
def test_no_more_is_read_once_it_is_no_value(first: bytes) -> None:
    pieces = Pieces(first + b" " * 100, len(first))

    assert not is_one_value(cast("BinaryIO", pieces))
    assert pieces.body.tell() == len(first)
