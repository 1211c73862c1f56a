"""``spoofable-condition``: deny rules that trust the caller."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import find_places, rule_with

CODE = "spoofable-condition"


@pytest.mark.parametrize("key", ["userAgent", "host", "origin", "referer"])
def test_headers(key: str) -> None:
    conditions = {"isDDL": True, "not": {key: {"startsWith": "x", "ignoreCase": True, "endsWith": "y"}}}
    assert find_places(CODE, rule_with(conditions, action="deny")) == [f"/rules/0/conditions/not/{key}"]


@pytest.mark.parametrize("key", ["clientIp", "userName", "standardizedSql", "serverHostname"])
def test_what_the_gateway_knows_itself(key: str) -> None:
    assert find_places(CODE, rule_with({key: "x"}, action="deny")) == []


@pytest.mark.parametrize("action", ["cache", "bypass"])
def test_other_actions_refuse_nothing(action: str) -> None:
    assert find_places(CODE, rule_with({"userAgent": "x"}, action=action)) == []
