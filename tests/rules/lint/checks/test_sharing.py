"""Warnings about results that users share."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_one, find_places, rule_with

SHARED_ACROSS_USERS = "shared-across-users"


def test_a_cache_rule_that_does_not_say_is_reported() -> None:
    assert find_places(SHARED_ACROSS_USERS, rule_with({"isDDL": False})) == ["/rules/0/varyBy"]
    assert find_places(SHARED_ACROSS_USERS, rule_with({"isDDL": False}, enabled=False)) == ["/rules/0/varyBy"]


@pytest.mark.parametrize("columns", [[], ["host"], ["userName"]])
def test_a_cache_rule_that_says_is_not(columns: list[str]) -> None:
    assert find_places(SHARED_ACROSS_USERS, rule_with({"isDDL": False}, varyBy=columns)) == []


@pytest.mark.parametrize("action", ["bypass", "deny"])
def test_other_rules_have_no_results_to_share(action: str) -> None:
    assert find_places(SHARED_ACROSS_USERS, rule_with({"isDDL": False}, action=action)) == []


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
    finding = find_one(SHARED_ACROSS_USERS, rule_with(conditions, varyBy=[]))
    assert finding.path == ("rules", 0, "conditions", key)
    assert f"The result of {word} depends on who asks" in finding.message
    assert find_places(SHARED_ACROSS_USERS, rule_with(conditions, varyBy=["userName"])) == []


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
    assert find_places(SHARED_ACROSS_USERS, rule_with(conditions, varyBy=[])) == []


SHARES_EVERYTHING = "shares-everything"


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
    finding = find_one(SHARES_EVERYTHING, rule_with(conditions, **vary_by))
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
    assert find_places(SHARES_EVERYTHING, rule) == []


def test_a_disabled_rule_is_reported_too() -> None:
    assert find_places(SHARES_EVERYTHING, rule_with({}, enabled=False)) == ["/rules/0/conditions"]
