"""``unconditional-deny``: deny rules that match everything."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_codes, find_places, rule_with

CODE = "unconditional-deny"


@pytest.mark.parametrize(
    "conditions",
    [{}, {"all": []}, {"userName": {"notIn": []}}, {"any": [{"isDDL": True}, {"isDDL": {"ne": True}}]}],
)
def test_conditions_that_always_match_are_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions, action="deny")) == ["/rules/0/conditions"]


def test_a_deny_rule_without_conditions_is_reported() -> None:
    assert find_places(CODE, {"id": "a", "action": "deny"}) == ["/rules/0"]


def test_a_disabled_rule_is_reported() -> None:
    assert find_codes({"id": "a", "action": "deny", "enabled": False}) == [CODE]


@pytest.mark.parametrize("conditions", [{"isDDL": True}, {"any": []}, {"userNmae": "x"}])
def test_conditions_that_do_not_always_match_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions, action="deny")) == []
