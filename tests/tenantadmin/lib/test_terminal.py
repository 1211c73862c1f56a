"""Tests of text from data that is printed on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantadmin.lib.terminal import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;pwned\x07", r"\x1b]0;pwned\x07"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("a\tb\r\nc", r"a\tb\r\nc"),
        ("\u202eabc\u2028\ufeff", r"\u202eabc\u2028\ufeff"),
        ("\ud800 \U000e0041", r"\ud800 \U000e0041"),
        ("Müller, 東京 🙂 C:\\x1b", "Müller, 東京 🙂 C:\\x1b"),
        ("", ""),
    ],
)
def test_characters_that_are_not_printable_are_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_the_result_is_always_printable(text: str) -> None:
    assert visible(text).isprintable()
