"""``spoofable-condition``: deny rules that depend on headers of the caller."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import find_places, rule_with

CODE = "spoofable-condition"


@pytest.mark.parametrize("key", ["userAgent", "host", "origin", "referer"])
def test_a_header_in_a_deny_rule_is_reported(key: str) -> None:
    conditions = {"isDDL": True, "not": {key: {"startsWith": "x", "ignoreCase": True, "endsWith": "y"}}}
    assert find_places(CODE, rule_with(conditions, action="deny")) == [f"/rules/0/conditions/not/{key}"]


@pytest.mark.parametrize("key", ["clientIp", "userName", "standardizedSql", "serverHostname"])
def test_values_that_the_gateway_determines_are_not_reported(key: str) -> None:
    assert find_places(CODE, rule_with({key: "x"}, action="deny")) == []


@pytest.mark.parametrize("action", ["cache", "bypass"])
def test_other_actions_are_not_reported(action: str) -> None:
    assert find_places(CODE, rule_with({"userAgent": "x"}, action=action)) == []
