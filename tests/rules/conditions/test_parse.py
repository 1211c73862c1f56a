"""Conditions that did not pass lint are refused with the place named."""

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
def test_the_place_is_named(document: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidConditions) as raised:
        parse_conditions(document)
    assert str(raised.value).startswith(f"{place}: ")


def test_eight_levels_are_read() -> None:
    parse_conditions(nest(8))
