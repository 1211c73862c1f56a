"""What users see of DuckDB's messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logs.columns import BY_NAME
from logs.sql import refusals
from logs.sql.refusals import add_hint, character_offset, clean_message, rank_candidates, with_position


def test_a_user_without_an_entry_in_passwd_may_run_queries() -> None:
    """OpenShift gives each project a user id that /etc/passwd does not have."""
    program = """
import pwd
def refuse(uid): raise KeyError(uid)
pwd.getpwuid = refuse
from logs.sql import child, refusals
print(refusals.clean_message("a"), child.connect().execute("SELECT 1").fetchall())
"""
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(refusals.__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stdout == "a [(1,)]\n", answer.stderr


_QUOTED = [
    "LIMIT/OFFSET cannot be negative",
    "Could not convert string 'SET x' to INT32",
    "Could not convert string 'x. Use SET threads TO 4 to see' to INT32",
    "Could not convert string '/home/reports/2026/a.csv' to INT32",
    "Could not convert string 'https://example.com/a/b' to INT32",
    'timestamp field value out of range: "2026/1/1 25:00"',
    'Could not parse string "2026/13/01" according to format specifier "%Y/%m/%d"\nError: Month out of range',
    "a/b and 1/2 stay",
    "/srvs/objects/x, a/srv/objects/x and /srv/objects stay",
]


@pytest.mark.parametrize("message", _QUOTED)
def test_text_that_a_message_quotes_is_kept(message: str) -> None:
    assert clean_message(message, roots=["/srv/objects", "/", "~"]) == message


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ('Cannot open file "/srv/objects/t/x.parquet": gone', 'Cannot open file "…": gone'),
        ("at /srv/objects/t/day=2026-01-01/x.parquet, or /srv/objects/y", "at …, or …"),
        ('Too deep. Use "SET max_depth TO x" to increase it.', "Too deep."),
        ("Too wide. Use SET pivot_limit=X to increase the limit.", "Too wide."),
        ("No effect.\n* SET by_literal=true to allow this behavior.\n\nPerhaps", "No effect.\n\nPerhaps"),
        ("Out of memory\n\nPossible solutions:\n* SET threads = 1", "Out of memory"),
        ("Bad\n\nLINE 1: SELECT x\n        ^", "Bad"),
    ],
)
def test_paths_of_the_service_and_advice_on_settings_are_removed(message: str, shown: str) -> None:
    assert clean_message(message, roots=["/srv", "/srv/objects"]) == shown


def test_paths_of_the_project_and_of_python_are_removed() -> None:
    assert clean_message(f"{refusals.__file__}: {sys.prefix}/lib/x.so") == "…: …"


_connection = duckdb.connect(config={"errors_as_json": True})


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("SELECT 1 LIMIT -1", "LIMIT/OFFSET cannot be negative"),
        ("SELECT 1 ORDER BY 'a'", "ORDER BY non-integer literal has no effect."),
        (
            "SELECT (SELECT 1 UNION ALL SELECT 2)",
            """More than one row returned by a subquery used as an expression - \
scalar subqueries can only return a single row.""",
        ),
        ("SELECT " + "+".join("1" * 1500), "Max expression depth limit of 1000 exceeded."),
    ],
)
def test_duckdbs_messages_are_cleaned(statement: str, shown: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        _connection.execute(statement).fetchall()
    message = json.loads(str(caught.value).partition(" Error: ")[2])["exception_message"]
    assert clean_message(message) == shown


_DAY_HINT = "`day` is text: compare it with '2026-03-01' or strftime(current_date - 7, '%Y-%m-%d')."
_TIME_HINT = (
    "`timestamp` and `cacheExpiresAt` are epoch milliseconds: to_timestamp(timestamp / 1000) is a time."
)


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("day >= current_date - 7", _DAY_HINT),
        ("current_date < day", _DAY_HINT),
        ("day >= current_timestamp", _DAY_HINT),
        ("day BETWEEN DATE '2026-03-01' AND DATE '2026-03-02'", _DAY_HINT),
        ("timestamp > TIMESTAMP '2026-01-01'", _TIME_HINT),
        ("timestamp > current_timestamp", _TIME_HINT),
        ("TIMESTAMP '2026-01-01' < timestamp", _TIME_HINT),
        ("timestamp > DATE '2026-01-01'", _TIME_HINT),
        ("day > 7 AND unknown", None),
    ],
)
def test_a_wrong_comparison_of_a_time_has_a_hint(condition: str, hint: str | None) -> None:
    with pytest.raises(duckdb.Error) as caught:
        _connection.execute(
            f"SELECT 1 FROM (SELECT '2026-03-01' AS day, 1::BIGINT AS timestamp) WHERE {condition}"
        )
    message = clean_message(json.loads(str(caught.value).partition(" Error: ")[2])["exception_message"])
    assert add_hint(message) == (message if hint is None else f"{message}. {hint}")


@given(st.text(max_size=20), st.text(max_size=20))
def test_an_offset_in_bytes_becomes_one_in_characters(before: str, after: str) -> None:
    assert character_offset(
        (before + after).encode(errors="replace"), len(before.encode(errors="replace"))
    ) == len(before)


@pytest.mark.parametrize("offset", [None, -1, 4])
def test_an_offset_outside_the_text_is_none(offset: int | None) -> None:
    assert character_offset(b"abc", offset) is None


@pytest.mark.parametrize(
    ("position", "shown"),
    [
        (None, "m"),
        (0, "m (line 1, column 1)"),
        (3, "m (line 2, column 1)"),
        (5, "m (line 2, column 3)"),
    ],
)
def test_line_and_column_are_added_to_a_message(position: int | None, shown: str) -> None:
    assert with_position("m", "ab\ncde", position) == shown


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("durationMs", ["responseTimeMs", "warehouseExecutionTimeMs"]),
        ("execTime", ["warehouseExecutionTimeMs", "responseTimeMs", "timestamp"]),
        ("usrName", ["userName", "matchedRuleName"]),
        ("table_count", ["tableCount", "tables"]),
        ("ttl", ["cacheTtlSeconds"]),
        # By the unit.
        ("bytes", ["requestSize", "responseSize"]),
        ("grandTotl", ["grandTotal"]),
        ("xyzzy", []),
    ],
)
def test_columns_that_share_words_with_an_unknown_one_are_named(name: str, alike: list[str]) -> None:
    connection = duckdb.connect()
    connection.execute("SET errors_as_json = true")
    columns = ", ".join(f'1 AS "{name}"' for name in (*BY_NAME, "grandTotal"))
    with pytest.raises(duckdb.BinderException) as raised:
        connection.execute(f"SELECT {name} FROM (SELECT {columns})")
    details = json.loads(str(raised.value).partition("Error: ")[2])
    message, _, candidates = rank_candidates(details["exception_message"], details).partition(
        "\nCandidate bindings: "
    )
    assert message == f'Referenced column "{name}" not found in FROM clause!'
    assert candidates == ", ".join(f'"{name}"' for name in alike)
