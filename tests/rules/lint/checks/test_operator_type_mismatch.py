"""``operator-type-mismatch``: an operator that does not fit its key."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import find_one, find_places, rule_with

CODE = "operator-type-mismatch"


@pytest.mark.parametrize(
    ("key", "operator", "operand"),
    [
        ("tableCount", "contains", "1"),
        ("tableCount", "regex", "1"),
        ("isDDL", "gt", 1),
        ("isDDL", "startsWith", "t"),
        ("userName", "gte", 1),
        ("userName", "containsAny", ["a"]),
        ("userName", "cidr", "10.0.0.0/8"),
        ("tables", "contains", "a"),
        ("tables", "lt", 1),
        ("clientIp", "containsAll", ["10.0.0.1"]),
        ("tableCount", "ignoreCase", True),
        ("isDDL", "ignoreCase", False),
    ],
)
def test_an_operator_that_does_not_fit_is_reported(key: str, operator: str, operand: object) -> None:
    assert find_places(CODE, rule_with({key: {operator: operand}})) == [
        f"/rules/0/conditions/{key}/{operator}"
    ]


@pytest.mark.parametrize("operator", ["eq", "contains", "startsWith", "endsWith", "regex"])
def test_text_operators_fit_an_address(operator: str) -> None:
    assert find_places(CODE, rule_with({"clientIp": {operator: "10."}})) == []


def test_the_message_names_the_operators_that_fit() -> None:
    assert find_one(CODE, rule_with({"userName": {"gte": 1}})).message == (
        "gte does not fit userName, which is text: "
        "use eq, ne, in, notIn, exists, contains, startsWith, endsWith, regex."
    )
    assert find_one(CODE, rule_with({"isDDL": {"gt": 1}})).message == (
        "gt does not fit isDDL, which is a boolean: use eq, ne, in, notIn, exists."
    )
