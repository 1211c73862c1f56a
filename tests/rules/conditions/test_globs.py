"""Patterns of table names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.conditions.patterns import glob_covers, glob_matches

patterns = st.text(alphabet="ab.*", max_size=8)
names = st.text(alphabet="ab.\n", max_size=8)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("sales.*", "sales.orders", True),
        ("sales.*", "sales", False),
        ("sales.*", "main.sales.orders", False),
        ("*.orders", "main.sales.orders", True),
        ("a*a", "a", False),
        ("a*b*c", "abbc", True),
        ("s?les", "sales", False),
        ("[s]ales", "[s]ales", True),
    ],
)
def test_patterns_match_whole_names(pattern: str, name: str, expected: bool) -> None:
    assert glob_matches(pattern, name) is expected


@given(pattern=patterns, name=names)
def test_a_star_matches_any_characters(pattern: str, name: str) -> None:
    expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))
    assert glob_matches(pattern, name) is (re.fullmatch(expression, name, re.DOTALL) is not None)


@given(outer=patterns, inner=patterns, name=names)
def test_a_wider_pattern_matches_all_names_of_a_narrower_one(outer: str, inner: str, name: str) -> None:
    if glob_covers(outer, inner) and glob_matches(inner, name):
        assert glob_matches(outer, name)
