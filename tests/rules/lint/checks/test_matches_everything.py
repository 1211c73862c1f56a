"""``matches-everything``: conditions that always match."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_codes, find_places, rule_with

CODE = "matches-everything"


def test_a_rule_without_conditions_is_reported() -> None:
    assert find_codes({"id": "a"}) == [CODE]
    assert find_places(CODE, {"id": "a"}) == ["/rules/0"]


@pytest.mark.parametrize(
    "conditions", [{}, {"all": [{}]}, {"not": {"any": []}}, {"any": [{}, {"isDDL": True}]}]
)
def test_conditions_that_always_match_are_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions)) == ["/rules/0/conditions"]


def test_a_deny_rule_has_another_finding() -> None:
    assert find_places(CODE, rule_with({}, action="deny")) == []


def test_conditions_that_null_does_not_match_are_not_reported() -> None:
    assert find_places(CODE, rule_with({"userName": {"regex": ".*"}})) == []
