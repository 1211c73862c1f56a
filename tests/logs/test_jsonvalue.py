"""One JSON value or not, in whatever pieces it comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logs.jsonvalue import is_one_value

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXTS = st.text(st.sampled_from('ab"\\,[]{}:é測\n\t 1e-😀\ud83d'), max_size=8)
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
    """A value as it may be written: blanks, escapes or none, a lone surrogate only escaped."""
    value, indent = draw(VALUES), draw(st.sampled_from([None, 0, 1]))
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if draw(st.booleans()) or "\ud83d" in text:
        text = json.dumps(value, indent=indent)
    return draw(st.sampled_from([b"", b" ", b"\r\n"])) + text.encode() + draw(st.sampled_from([b"", b"\t\n"]))


def cut(body: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield body[at : at + size]
        at += size
    yield body[at:]


SIZES = st.lists(st.integers(0, 12), max_size=40)


@given(body=written(), sizes=SIZES)
def test_a_value_is_one_in_any_pieces(body: bytes, sizes: list[int]) -> None:
    assert is_one_value([body])
    assert is_one_value(cut(body, sizes))
    assert is_one_value(body[at : at + 1] for at in range(len(body)))


@given(body=written(), other=written(), sizes=SIZES, data=st.data())
def test_what_is_damaged_or_goes_on_is_judged_as_by_python(
    body: bytes, other: bytes, sizes: list[int], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(body)))
    damage = data.draw(
        st.sampled_from([b"", b",", b"]", b"}", b'"', b"\\", b"0", b"\xff", b"[", b"\n", b"e"])
    )
    damaged = body[:at] + damage + body[at + data.draw(st.integers(0, 2)) :]

    for text in (damaged, body + b"\n" + other, body[:at]):
        assert is_one_value(cut(text, sizes)) is in_python(text), text


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
    assert not is_one_value([body])
    assert not is_one_value(body[at : at + 1] for at in range(len(body)))


@pytest.mark.parametrize(
    "body", [b"1e999", rb'"\ud83d"', rb'"\uDBFF\\ud83d"', b"1" * 400, b"[" * 800 + b"]" * 800]
)
def test_values_that_are_no_python_objects_are_values(body: bytes) -> None:
    assert is_one_value([body])
    assert is_one_value(cut(body, [3] * 300))


class Pieces:
    """Pieces that say how many were taken."""

    def __init__(self, *pieces: bytes) -> None:
        self.left = list(pieces)

    def __iter__(self) -> Iterator[bytes]:
        while self.left:
            yield self.left.pop(0)


@pytest.mark.parametrize("first", [b'{"a":1}\n{"a"', b"not json", b"[1,]", b"1\n2\n3", b'{"a":"\xff', b"1,2"])
def test_no_more_is_taken_once_it_is_no_value(first: bytes) -> None:
    pieces = Pieces(first, b"x", b"y")

    assert not is_one_value(pieces)
    assert len(pieces.left) >= 1
