"""Recommendations share no result that depends on who asks or when, whatever the log's flags say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analytics.advice.estimate import Statement
from analytics.advice.mine import _find_reason
from rules.conditions import read_request


def statement_of(text: str, *tables: str) -> Statement:
    columns: dict[str, Any] = {
        "tables": json.dumps(tables),
        "isReadOnly": True,
        "isDataChange": False,
        "isDDL": False,
        "hasNonDeterministicFunctions": False,
    }
    return Statement(0, text, 100, read_request({"standardizedSql": text, **columns}), columns["tables"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * FROM s.t WHERE owner = USER", "per-user"),
        ("SELECT * FROM s.t WHERE owner = $me", "per-user"),
        ("SELECT * FROM s.t WHERE IS_APPLICATION_ROLE_IN_SESSION(?)", "per-user"),
        ("SELECT CURRENT_ROLE_TYPE(), x FROM s.t", "per-user"),
        ("SELECT `current_user`(), x FROM s.t", "per-user"),
        ("SELECT * FROM s.t WHERE r = current_recipient(?)", "per-user"),
        ("SELECT * FROM information_schema.tables", "per-user"),
        ("SELECT current_schema(), x FROM s.t", "per-user"),
        ("SHOW TABLES", "per-user"),
        ("SELECT * FROM s.t WHERE day = CURRENT_DATE", "non-deterministic"),
        ("SELECT * FROM s.t", "too-little-to-save"),
        ("SELECT count(*) FROM app.user (x)", "too-little-to-save"),
    ],
)
def test_the_reason_of_a_statement(text: str, reason: str) -> None:
    assert _find_reason(statement_of(text, "s.t"), is_unsafe=False) == reason


def test_a_table_without_a_schema_is_a_doubt() -> None:
    assert statement_of("SELECT 1", "s.t", "t").names_no_schema
    assert not statement_of("SELECT 1", "s.t", "d.s.t").names_no_schema
