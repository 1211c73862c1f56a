"""``contradictory-conditions``: conditions that exclude each other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_places, rule_with

CODE = "contradictory-conditions"


@pytest.mark.parametrize(
    "conditions",
    [
        {"any": []},
        {"userName": {"in": []}},
        {"userName": {"eq": "ann", "startsWith": "b"}},
        {"userName": {"exists": False, "regex": "a"}},
        {"all": [{"userName": "ann"}, {"userName": "bob"}]},
        {"isDDL": True, "not": {"isDDL": True}},
        {"tableCount": {"gt": 1, "lt": 2}},
        {"clientIp": {"eq": "10.0.0.1", "cidr": "192.168.0.0/16"}},
        {"any": [{"host": {"eq": "a", "ne": "a"}}, {"not": {}}]},
    ],
)
def test_conditions_that_never_match_are_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions)) == ["/rules/0/conditions"]


@pytest.mark.parametrize(
    "conditions",
    [
        {"userName": {"eq": "ann", "startsWith": "a"}},
        {"tableCount": {"gte": 2, "lte": 2}},
        {"userName": {"exists": False, "ne": "ann"}},
        {"tables": {"containsAll": ["a.b", "c.d"]}},
    ],
)
def test_conditions_that_can_match_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions)) == []
