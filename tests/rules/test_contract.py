"""The schema of conditions in the contract and the lint allow the same. Contract: Cache rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from openapi_schema_validator import OAS30WriteValidator

from rules.conditions import CONDITION_KEYS, OPERATORS
from rules.contract import rule_schemas
from rules.lint import lint_ruleset
from tests.rules.conditions.strategies import conditions

SCHEMAS = rule_schemas()
VALIDATOR = OAS30WriteValidator(
    {"allOf": [{"$ref": "#/components/schemas/Conditions"}], "components": {"schemas": SCHEMAS}}
)


@given(conditions)
def test_the_schema_allows_all_valid_rulesets(document: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    "document",
    [
        {"usrName": "a"},
        {"userName": 7},
        {"userName": None},
        {"userName": {"like": "a"}},
        {"userName": {}},
        {"userName": {"gt": 1}},
        {"userName": {"in": "a"}},
        {"userName": {"in": [1]}},
        {"userName": {"exists": "yes"}},
        {"tableCount": "2"},
        {"tableCount": {"gt": 1, "ignoreCase": True}},
        {"isReadOnly": {"eq": 1}},
        {"tables": ["a"]},
        {"tables": {"containsAny": "a"}},
        {"clientIp": {"cidr": 1}},
        {"all": {"userName": "a"}},
        {"any": ["a"]},
        {"not": [{"userName": "a"}]},
        [],
    ],
)
def test_lint_reports_all_errors_of_the_schema(document: Any) -> None:
    assert not VALIDATOR.is_valid(document)
    assert not lint_ruleset({"rules": [{"id": "r", "conditions": document}]}).valid


def test_every_key_and_every_operator_is_in_the_schema() -> None:
    assert list(SCHEMAS["Conditions"]["properties"]) == ["all", "any", "not", *CONDITION_KEYS]
    named = {
        name
        for schema in ("Text", "Number", "Boolean", "Tables", "Address")
        for name in SCHEMAS[f"{schema}Operators"]["properties"]
    }
    assert named == {*(operator.value for operator in OPERATORS), "ignoreCase"}
    columns = [*CONDITION_KEYS, "userTokenHash", "sessionId"]
    assert list(SCHEMAS["RequestColumns"]["properties"]) == columns
