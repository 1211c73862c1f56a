"""What of the engine's messages is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logs.sql.messages import character_offset, clean_message, with_place


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Could not convert string 'a' to INT32", "Could not convert string 'a' to INT32"),
        ('Cannot open file "/srv/objects/t/x.parquet": gone', 'Cannot open file "…": gone'),
        ("from s3://bucket/t/x.parquet failed", "from … failed"),
        ('Too deep. Use "SET max_expression_depth TO x" to increase', "Too deep."),
        ("Out of memory\n\nPossible solutions:\n* SET threads = 1", "Out of memory"),
        ("Bad\n\nLINE 1: SELECT x\n        ^", "Bad"),
        ("a/b and 1/2 stay", "a/b and 1/2 stay"),
    ],
)
def test_clean_message(message: str, shown: str) -> None:
    assert clean_message(message) == shown


@given(st.text(max_size=20), st.text(max_size=20))
def test_character_offset(before: str, after: str) -> None:
    assert character_offset(
        (before + after).encode(errors="replace"), len(before.encode(errors="replace"))
    ) == len(before)


@pytest.mark.parametrize("offset", [None, -1, 4])
def test_an_offset_outside_the_text_is_none(offset: int | None) -> None:
    assert character_offset(b"abc", offset) is None


@pytest.mark.parametrize(
    ("position", "shown"),
    [
        (None, "m"),
        (0, "m (line 1, column 1)"),
        (3, "m (line 2, column 1)"),
        (5, "m (line 2, column 3)"),
    ],
)
def test_with_place(position: int | None, shown: str) -> None:
    assert with_place("m", "ab\ncde", position) == shown
