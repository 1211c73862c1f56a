"""JSON values and paths in messages."""

from __future__ import annotations

import math

import pytest

from rules.json_text import (
    has_forbidden_characters,
    is_number,
    join_pointer,
    name_type,
    read_integer,
    show_text,
    show_value,
)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        (math.nan, "a number that is not finite"),
        ("", "a string"),
        ([], "an array"),
        ({}, "an object"),
        (object(), "an unknown value"),
    ],
)
def test_the_name_of_a_values_type(value: object, name: str) -> None:
    assert name_type(value) == name


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (False, "false"),
        (7, "7"),
        (1e300, "1e+300"),
        (10**100, "a huge number"),
        ('a\n"é', '"a\\n\\"é"'),
        ("\ud800", '"?"'),
        ([1], "an array"),
        (math.inf, "a number that is not finite"),
    ],
)
def test_values_are_shown_in_messages(value: object, shown: str) -> None:
    assert show_value(value) == shown


def test_long_texts_are_shortened() -> None:
    assert show_text("x" * 81) == '"' + "x" * 79 + '…"'
    assert show_text("x" * 80) == '"' + "x" * 80 + '"'


@pytest.mark.parametrize(
    ("value", "integer"),
    [
        (1, 1),
        (1.0, 1),
        (True, None),
        (1.5, None),
        (math.inf, None),
        (math.nan, None),
        ("1", None),
        (None, None),
    ],
)
def test_read_integer_accepts_whole_numbers(value: object, integer: int | None) -> None:
    assert read_integer(value) == integer


@pytest.mark.parametrize(
    ("value", "expected"), [(1, True), (0.5, True), (True, False), (math.nan, False), ("1", False)]
)
def test_is_number_accepts_finite_numbers(value: object, expected: bool) -> None:
    assert is_number(value) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", False), ("é😀", False), ("a\0", True), ("é\0", True), (chr(0xD800), True), (chr(0xDFFF), True)],
)
def test_nul_and_unpaired_surrogates_are_forbidden(text: str, expected: bool) -> None:
    assert has_forbidden_characters(text) is expected


def test_paths_become_json_pointers() -> None:
    assert join_pointer(()) == ""
    assert join_pointer(("a/b", 0, "m~n", "")) == "/a~1b/0/m~0n/"
