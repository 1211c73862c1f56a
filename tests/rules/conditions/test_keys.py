"""The condition keys are columns of the log, and their kinds fit the types of the columns."""

from __future__ import annotations

import pytest

from logs.columns import BY_NAME, Group, SqlType
from rules.conditions import CONDITION_KEYS, ConditionKey, Kind

KINDS = {
    SqlType.VARCHAR: {Kind.TEXT, Kind.TABLES, Kind.IP},
    SqlType.INTEGER: {Kind.NUMBER},
    SqlType.BOOLEAN: {Kind.BOOL},
}


def test_all_condition_keys_exist() -> None:
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
def test_a_key_has_the_kind_of_its_column(key: ConditionKey) -> None:
    column = BY_NAME[key.name]

    assert key.kind in KINDS[column.type]
    assert (key.kind is Kind.TABLES) is column.json_text
    assert column.group is not Group.CACHE
    assert key.caller_supplied is (column.group is Group.CALLER and key.name != "clientIp")
