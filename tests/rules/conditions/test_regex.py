"""Patterns are RE2, bounded, and the same RE2 as the log's engine."""

from __future__ import annotations

import time

import pytest

from rules.conditions.regex import InvalidRegex, compile_regex


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("a.b", "a\nb", False),
        ("(?s)a.b", "a\nb", True),
        ("^line$", "line\nline", False),
        ("(?m)^line$", "a\nline", True),
        ("É", "café É", True),
    ],
)
def test_patterns_are_searched(pattern: str, text: str, found: bool) -> None:
    assert compile_regex(pattern).is_found_in(text) is found


def test_case_can_be_ignored() -> None:
    assert compile_regex("É", ignore_case=True).is_found_in("é")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", r"missing \)"),
        ("(?=a)", "invalid perl operator"),
        (r"\1", "invalid escape sequence"),
        ("((a{100}){100}){100}", "invalid repetition size"),
        (r"(\pL{100}){10}", "pattern too large"),
        ("(?<name>a)", "a named group is written"),
    ],
)
def test_what_does_not_compile_says_why(pattern: str, problem: str) -> None:
    with pytest.raises(InvalidRegex, match=problem):
        compile_regex(pattern)


def test_matching_is_linear_where_backtracking_would_never_end() -> None:
    started = time.process_time()
    assert not compile_regex("^(a+)+$").is_found_in("a" * 50_000 + "b")
    assert time.process_time() - started < 5
