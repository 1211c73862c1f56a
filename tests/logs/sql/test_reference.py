"""docs/sql.md agrees with the code."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from logs.columns import COLUMNS
from logs.sql import guard
from logs.sql.protocol import Limits
from logs.sql.reference import render

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "sql.md"
_text = _PAGE.read_text()
_examples = [
    statement
    for block in re.findall(r"```sql\n(.*?)```", _text, re.DOTALL)
    for statement in block.split(";\n")
    if statement.strip()
]


def test_the_generated_parts_are_current() -> None:
    assert render(_text) == _text, "run 'make contract'"


def test_every_column_is_listed() -> None:
    assert all(f"| `{column.name}` | {column.type} |" in _text for column in COLUMNS)


def test_the_limits_match_the_code() -> None:
    limits = Limits()
    assert f"| {limits.seconds:g} s | `query_timeout`" in _text
    assert f"| rows | {limits.max_rows:,} |" in _text
    assert f"| {limits.max_bytes >> 20} MiB | cut" in _text
    assert f"| columns of the result | {limits.max_columns:,} |" in _text
    assert f"| memory | {limits.memory_bytes >> 30} GiB |" in _text
    assert f"| {guard.MAX_STATEMENT_BYTES >> 10} KiB | `query_rejected`" in _text


@pytest.mark.parametrize("statement", _examples)
def test_the_examples_are_allowed_and_run(statement: str) -> None:
    with duckdb.connect() as connection:
        columns = ", ".join(f'NULL::{column.type} AS "{column.name}"' for column in COLUMNS)
        connection.execute(f"CREATE VIEW proxy_logs AS SELECT {columns}, '2026-11-20' AS day")
        assert guard.check(statement, connection).reads_log
        assert connection.execute(statement).fetchall() is not None


def test_every_sql_block_is_an_example() -> None:
    assert len(_examples) >= _text.count("```sql") > 0
