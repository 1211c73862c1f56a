"""``shares-everything``: cache rules that would serve every result to every user."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_one, find_places, rule_with

CODE = "shares-everything"


@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"isReadOnly": True},
        {"not": {"isReadOnly": False}},
        {"isDataChange": False, "isDDL": False},
        {"isReadOnly": True, "userName": {"contains": ""}},
        {"isReadOnly": True, "tables": {"containsAny": ["*"]}},
        {"any": [{"isReadOnly": True}, {"userName": "ann"}]},
    ],
)
@pytest.mark.parametrize("vary_by", [{}, {"varyBy": []}, {"varyBy": ["host"]}])
def test_a_shared_rule_for_every_statement_that_reads(
    conditions: dict[str, Any], vary_by: dict[str, Any]
) -> None:
    finding = find_one(CODE, rule_with(conditions, **vary_by))
    assert (finding.path, finding.hurts) == (("rules", 0, "conditions"), True)


@pytest.mark.parametrize(
    "rule",
    [
        rule_with({"isReadOnly": True}, varyBy=["userName"]),
        rule_with({"isReadOnly": True}, varyBy=["userTokenHash"]),
        rule_with({"isReadOnly": True}, action="bypass"),
        rule_with({"isReadOnly": True, "tables": {"containsAny": ["sales.*"]}}, varyBy=[]),
        rule_with({"isReadOnly": True, "userName": "ann"}, varyBy=[]),
        rule_with({"isReadOnly": True, "userName": {"exists": True}}, varyBy=[]),
        rule_with({"isReadOnly": False}, varyBy=[]),
        rule_with({"tableCount": {"gt": 3, "lt": 3}}, varyBy=[]),
    ],
)
def test_other_rules_do_not(rule: dict[str, Any]) -> None:
    assert find_places(CODE, rule) == []


def test_a_disabled_rule_is_reported_too() -> None:
    assert find_places(CODE, rule_with({}, enabled=False)) == ["/rules/0/conditions"]
