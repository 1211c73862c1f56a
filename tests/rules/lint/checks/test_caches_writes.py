"""``caches-writes``: cache rules for statements that write."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_one, find_places, rule_with

CODE = "caches-writes"


@pytest.mark.parametrize(
    ("conditions", "place"),
    [
        ({"isDataChange": True}, "/isDataChange"),
        ({"isDDL": True}, "/isDDL"),
        ({"isReadOnly": False}, "/isReadOnly"),
        ({"not": {"isReadOnly": True}}, "/not/isReadOnly"),
        ({"statementType": "INSERT"}, "/statementType"),
        ({"statementType": {"in": ["SELECT", "merge"]}}, "/statementType"),
    ],
)
def test_conditions_that_select_writes_are_reported(conditions: dict[str, Any], place: str) -> None:
    assert find_places(CODE, rule_with(conditions)) == [f"/rules/0/conditions{place}"]


@pytest.mark.parametrize(
    "statement_type",
    [
        *("INSERT", "UPDATE", "DELETE", "MERGE", "UPSERT", "REPLACE", "TRUNCATE", "COPY"),
        *("CREATE", "ALTER", "DROP", "GRANT", "REVOKE"),
    ],
)
def test_every_type_of_statement_that_writes(statement_type: str) -> None:
    rule = rule_with({"statementType": statement_type})
    assert find_places(CODE, rule) == ["/rules/0/conditions/statementType"]


@pytest.mark.parametrize(
    "conditions",
    [
        {"isReadOnly": True},
        {"statementType": "SELECT"},
        {"not": {"statementType": "INSERT"}},
        {"isDDL": False},
    ],
)
def test_other_conditions_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions)) == []


def test_a_bypass_rule_is_not_reported() -> None:
    assert find_places(CODE, rule_with({"isDataChange": True}, action="bypass")) == []


@pytest.mark.parametrize("conditions", [{}, {"userName": {"contains": ""}}, {"any": [{}, {"isDDL": True}]}])
def test_a_rule_that_matches_everything_matches_writes(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions)) == ["/rules/0/conditions"]
    assert find_one(CODE, rule_with(conditions)).hurts
    assert find_places(CODE, rule_with(conditions, action="bypass")) == []
