"""Conditions that have not passed lint are refused, and the error names the place."""

from __future__ import annotations

from typing import Any

import pytest

from rules.conditions import InvalidConditions, parse_conditions


def nest(levels: int) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for _ in range(levels):
        document = {"not": document}
    return document


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"user": "ann"}, "/user"),
        ({"userName": None}, "/userName"),
        ({"userName": {"equals": "ann"}}, "/userName/equals"),
        ({"userName": {"gt": 1}}, "/userName/gt"),
        ({"userName": {"in": ["a", 1]}}, "/userName/in"),
        ({"userName": {"eq": "a\0"}}, "/userName/eq"),
        ({"isDDL": {"eq": True, "ignoreCase": True}}, "/isDDL/ignoreCase"),
        ({"all": {}}, "/all"),
        ({"any": [{}, 1]}, "/any/1"),
        ({"not": []}, "/not"),
        (nest(9), "/not/not/not/not/not/not/not/not/not"),
    ],
)
def test_the_error_names_the_place(document: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidConditions) as raised:
        parse_conditions(document)
    assert str(raised.value).startswith(f"{place}: ")


def test_eight_levels_of_nesting_are_read() -> None:
    parse_conditions(nest(8))
