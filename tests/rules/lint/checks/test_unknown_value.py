"""``unknown-value``: values that no request has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_places, rule_with

CODE = "unknown-value"


@pytest.mark.parametrize(
    ("conditions", "place"),
    [
        ({"statementType": "select"}, "statementType"),
        ({"statementType": {"eq": "Select"}}, "statementType/eq"),
        ({"statementType": {"in": ["SELECT", "insert"]}}, "statementType/in/1"),
        ({"statementType": {"ne": "SELCET"}}, "statementType/ne"),
        ({"adapterType": {"notIn": ["Snowflake"]}}, "adapterType/notIn/0"),
        ({"adapterType": "bigquery"}, "adapterType"),
        ({"adapterType": {"eq": "bigquery", "ignoreCase": True}}, "adapterType/eq"),
        ({"cacheOverride": "no-cache"}, "cacheOverride"),
        ({"operationType": "execute_statement"}, "operationType"),
        ({"not": {"operationType": "ExecuteStatement"}}, "not/operationType"),
        ({"statementType": {"startsWith": "sel"}}, "statementType/startsWith"),
        ({"operationType": {"contains": "-"}}, "operationType/contains"),
        ({"adapterType": {"endsWith": "SQL"}}, "adapterType/endsWith"),
        ({"cacheOverride": {"contains": "never", "ignoreCase": True}}, "cacheOverride/contains"),
    ],
)
def test_a_value_that_the_log_never_has_is_reported(conditions: dict[str, Any], place: str) -> None:
    assert find_places(CODE, rule_with(conditions)) == [f"/rules/0/conditions/{place}"]


@pytest.mark.parametrize(
    "conditions",
    [
        {"statementType": "SELECT"},
        {"statementType": {"eq": "select", "ignoreCase": True}},
        {"statementType": {"startsWith": "sel", "ignoreCase": True}},
        {"statementType": {"endsWith": " TABLE"}},
        {"operationType": {"contains": "_"}},
        {"adapterType": {"endsWith": "SQL", "ignoreCase": True}},
        {"cacheOverride": {"contains": "cache"}},
        {"userName": {"startsWith": "sel"}},
        {"statementType": {"in": ["OTHER", "CREATE TABLE"]}},
        {"adapterType": {"in": ["databricks", "snowflake", "postgresql"]}},
        {"cacheOverride": {"in": ["cache", "nocache"]}},
        {"operationType": {"in": ["EXECUTE_STATEMENT", "SYNC"]}},
        {"userName": "select"},
        {"statementType": 5},
        {"statementType": {"in": "select"}},
    ],
)
def test_other_values_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions)) == []
