"""``shared-across-users``: a cache rule should say whether users share its results."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_one, find_places, rule_with

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


@pytest.mark.parametrize(
    ("conditions", "key", "word"),
    [
        (
            {"standardizedSql": "SELECT x FROM t WHERE owner = CURRENT_USER"},
            "standardizedSql",
            "CURRENT_USER",
        ),
        ({"standardizedSql": {"contains": "is_member("}}, "standardizedSql", "is_member()"),
        ({"standardizedSql": {"startsWith": "SHOW TABLES"}}, "standardizedSql", "SHOW"),
        ({"standardizedSql": "SELECT * FROM t WHERE region = $region"}, "standardizedSql", "$region"),
        ({"tables": {"containsAny": ["sales.*", "information_schema.*"]}}, "tables", "information_schema"),
    ],
)
def test_conditions_that_select_what_depends_on_who_asks_name_the_word(
    conditions: dict[str, Any], key: str, word: str
) -> None:
    finding = find_one(CODE, rule_with(conditions, varyBy=[]))
    assert finding.path == ("rules", 0, "conditions", key)
    assert f"The result of {word} depends on who asks" in finding.message
    assert find_places(CODE, rule_with(conditions, varyBy=["userName"])) == []


@pytest.mark.parametrize(
    "conditions",
    [
        {"standardizedSql": {"contains": "user"}},
        {"standardizedSql": {"regex": "current_user"}},
        {"not": {"standardizedSql": {"contains": "current_user"}}},
        {"userName": "current_user()"},
        {"tables": {"containsAny": ["pg_catalog.pg_class", "sales.user"]}},
    ],
)
def test_other_conditions_do_not(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions, varyBy=[])) == []
