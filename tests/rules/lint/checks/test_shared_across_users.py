"""``shared-across-users``: a cache rule should say whether users share its results."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import find_places, rule_with

CODE = "shared-across-users"


def test_a_cache_rule_that_does_not_say_is_reported() -> None:
    assert find_places(CODE, rule_with({"isDDL": False})) == ["/rules/0/varyBy"]
    assert find_places(CODE, rule_with({"isDDL": False}, enabled=False)) == ["/rules/0/varyBy"]


@pytest.mark.parametrize("columns", [[], ["host"], ["userName"]])
def test_a_cache_rule_that_says_is_not(columns: list[str]) -> None:
    assert find_places(CODE, rule_with({"isDDL": False}, varyBy=columns)) == []


@pytest.mark.parametrize("action", ["bypass", "deny"])
def test_other_rules_have_no_results_to_share(action: str) -> None:
    assert find_places(CODE, rule_with({"isDDL": False}, action=action)) == []
