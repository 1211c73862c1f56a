"""Patterns are RE2, have limits, and give the same results as in DuckDB."""

from __future__ import annotations

import time

import pytest

from rules.conditions.patterns import InvalidRegex, compile_regex


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
def test_patterns_match_anywhere_in_the_text(pattern: str, text: str, found: bool) -> None:
    assert compile_regex(pattern).is_found_in(text) is found


@pytest.mark.parametrize(("pattern", "text"), [(r"\\C", r"\C"), (r"\Q\C\E", r"\C"), (r"\.C", ".C")])
def test_a_quoted_escape_is_text(pattern: str, text: str) -> None:
    assert compile_regex(pattern).is_found_in(text)


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
        ("(?<name>a)", "write a named group as"),
        (r"a\C", "other implementations of RE2 refuse"),
        (r"\Q\E\\\C", "other implementations of RE2 refuse"),
        ("(?P<é>a)", "ASCII"),
        (r"(?P<a>b)\\(?P<a>c)", "a name of its own"),
    ],
)
def test_the_error_says_why_a_pattern_does_not_compile(pattern: str, problem: str) -> None:
    with pytest.raises(InvalidRegex, match=problem):
        compile_regex(pattern)


def test_matching_takes_linear_time() -> None:
    started = time.process_time()
    assert not compile_regex("^(a+)+$").is_found_in("a" * 50_000 + "b")
    assert time.process_time() - started < 5
