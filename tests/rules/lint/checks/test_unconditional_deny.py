"""``unconditional-deny``: no rule shuts a tenant out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_codes, find_places, rule_with

CODE = "unconditional-deny"


@pytest.mark.parametrize(
    "conditions",
    [{}, {"all": []}, {"userName": {"notIn": []}}, {"any": [{"isDDL": True}, {"isDDL": {"ne": True}}]}],
)
def test_conditions_that_always_hold(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions, action="deny")) == ["/rules/0/conditions"]


def test_no_conditions() -> None:
    assert find_places(CODE, {"id": "a", "action": "deny"}) == ["/rules/0"]


def test_disabled_too() -> None:
    assert find_codes({"id": "a", "action": "deny", "enabled": False}) == [CODE]


@pytest.mark.parametrize("conditions", [{"isDDL": True}, {"any": []}, {"userNmae": "x"}])
def test_conditions_that_may_fail(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions, action="deny")) == []
