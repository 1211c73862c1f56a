"""`is_one_value` recognises one JSON value, whatever the sizes of the chunks that it reads."""

from __future__ import annotations

import io
import json
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logs.tree import is_one_value

TEXTS = st.text(st.sampled_from('ab"\\,[]{}:é測\n\t 1e-😀'), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def is_json(body: bytes) -> bool:
    """Return True if the grammar of RFC 8259 accepts it. Python's parser also accepts NaN and Infinity."""

    def refuse(_: str) -> None:
        raise ValueError

    try:
        json.loads(body.decode(), parse_constant=refuse, parse_int=str, parse_float=str)
    except ValueError:
        return False
    return True


@st.composite
def json_texts(draw: st.DrawFn) -> bytes:
    """Return a JSON value with or without white space and escapes."""
    indent, is_ascii = draw(st.sampled_from([None, 0, 1])), draw(st.booleans())
    text = json.dumps(draw(VALUES), ensure_ascii=is_ascii, indent=indent)
    return draw(st.sampled_from([b"", b" ", b"\r\n"])) + text.encode() + draw(st.sampled_from([b"", b"\t\n"]))


class SmallReads:
    """A file whose reads return at most ``size`` bytes."""

    def __init__(self, body: bytes, size: int) -> None:
        self.body, self.size = io.BytesIO(body), size

    def read(self, size: int = -1) -> bytes:
        return self.body.read(min(self.size, size))


def is_value(body: bytes, size: int = 1 << 20) -> bool:
    return is_one_value(cast("BinaryIO", SmallReads(body, size)))


SIZES = st.integers(1, 12)


@given(body=json_texts(), size=SIZES)
def test_a_value_is_recognised_with_any_size_of_reads(body: bytes, size: int) -> None:
    assert is_value(body)
    assert is_value(body, size)


@given(body=json_texts(), other=json_texts(), size=SIZES, data=st.data())
def test_damaged_and_repeated_values_give_the_same_answer_as_pythons_parser(
    body: bytes, other: bytes, size: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(body)))
    damage = data.draw(
        st.sampled_from([b"", b",", b"]", b"}", b'"', b"\\", b"0", b"\xff", b"[", b"\n", b"e"])
    )
    damaged = body[:at] + damage + body[at + data.draw(st.integers(0, 2)) :]

    for text in (damaged, damaged + b"\n", body + b"\n" + other, body[:at], body[:at] + b"\n"):
        assert is_value(text, size) is is_json(text), text


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
def test_text_that_is_not_one_json_value_is_refused(body: bytes) -> None:
    assert not is_value(body)
    assert not is_value(body, 1)


@pytest.mark.parametrize(
    "body", [b"1e999", rb'"\ud83d"', rb'"\uDBFF\\ud83d"', b"1" * 400, b"[" * 5000 + b"]" * 5000]
)
def test_json_that_python_cannot_represent_is_accepted(body: bytes) -> None:
    assert is_value(body)
    assert is_value(body, 3)


def test_a_long_value_is_not_read_to_its_end() -> None:
    stream = io.BytesIO(b"[" + b"1," * (4 << 20))
    assert is_one_value(stream)
    assert stream.tell() < 4 << 20


@pytest.mark.parametrize("first", [b'{"a":1}\n{"a"', b"not json", b"[1,]", b"1\n2\n3", b'{"a":"\xff', b"1,2"])
def test_reading_stops_at_the_first_error(first: bytes) -> None:
    stream = SmallReads(first + b" " * 100, len(first))

    assert not is_one_value(cast("BinaryIO", stream))
    assert stream.body.tell() == len(first)
