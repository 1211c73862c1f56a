"""The condition keys are request-side columns of the log, with the kinds of the log's types."""

from __future__ import annotations

import pytest

from logs.columns import BY_NAME, Group, SqlType
from rules.conditions import CONDITION_KEYS, ConditionKey, Kind

KINDS = {
    SqlType.VARCHAR: {Kind.TEXT, Kind.TABLES, Kind.IP},
    SqlType.INTEGER: {Kind.NUMBER},
    SqlType.BOOLEAN: {Kind.BOOL},
}


def test_the_keys_of_the_language() -> None:
    assert list(CONDITION_KEYS) == [
        "standardizedSql",
        "statementType",
        "tables",
        "tableCount",
        "isReadOnly",
        "isDataChange",
        "isDDL",
        "hasParameters",
        "hasNonDeterministicFunctions",
        "cacheOverride",
        "userName",
        "clientIp",
        "userAgent",
        "host",
        "origin",
        "referer",
        "operationType",
        "adapterType",
        "serverHostname",
    ]


@pytest.mark.parametrize("key", CONDITION_KEYS.values(), ids=CONDITION_KEYS)
def test_a_key_is_a_column_of_the_log(key: ConditionKey) -> None:
    column = BY_NAME[key.name]

    assert key.kind in KINDS[column.type]
    assert (key.kind is Kind.TABLES) is column.json_text
    assert column.group is not Group.CACHE
    assert key.caller_supplied is (column.group is Group.CALLER and key.name != "clientIp")
