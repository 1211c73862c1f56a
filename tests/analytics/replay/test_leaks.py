"""Leaks that a ruleset ends or begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb

from analytics.replay.load import Job
from logs.layout import DAY_MS
from rules.language import read_rules
from rules.tables.warehouse import WarehouseTables
from tests.analytics.replay.streams import DAYS, make_row, run_replay, write_days

if TYPE_CHECKING:
    from pathlib import Path

SHARED: dict[str, Any] = {"id": "c", "name": "Customers", "conditions": {"isReadOnly": True}, "varyBy": []}
OWN = SHARED | {"varyBy": ["userName"]}
#: The first two depend on the user: one by a function, one by a table.
STATEMENTS = {"SELECT current_user()": "[]", "SELECT a FROM own": '["s.own"]', "SELECT b FROM t": '["s.t"]'}


def find_leaks(directory: Path, *, subject: dict[str, Any], current: dict[str, Any]) -> dict[str, Any]:
    """Replay requests of three users, all of them for one statement, two for the others."""
    rows = [
        make_row(
            at=DAY_MS + 10_000 * number + place,
            standardizedSql=text,
            tables=tables,
            isReadOnly=True,
            warehouseExecutionTimeMs=100,
            userName=name,
        )
        for place, name in enumerate(("ann", "bob", "cem"))
        for number, (text, tables) in enumerate(STATEMENTS.items())
        if name != "cem" or "own" in text
    ]
    job = Job(
        write_days(rows, directory),
        DAYS[1],
        DAYS[1],
        read_rules([subject]),
        read_rules([current]),
        tables=WarehouseTables(per_user=("S.OWN",)),
    )
    with duckdb.connect(config={"threads": 1}) as connection:
        leaks: dict[str, Any] = run_replay(connection, job)["leaks"]
    return leaks


def test_a_leak_ends_where_results_vary_by_user_and_begins_where_they_are_shared(tmp_path: Path) -> None:
    leak = {"ruleId": "c", "ruleName": "Customers", "statements": 2, "users": 3, "words": ("current_user()",)}
    assert find_leaks(tmp_path / "1", subject=OWN, current=SHARED) == {"ended": [leak], "begun": []}
    assert find_leaks(tmp_path / "2", subject=SHARED, current=OWN) == {"ended": [], "begun": [leak]}


def test_a_leak_that_stays_neither_ends_nor_begins(tmp_path: Path) -> None:
    longer = SHARED | {"ttlSeconds": 10}
    assert find_leaks(tmp_path, subject=longer, current=SHARED) == {"ended": [], "begun": []}


def test_results_of_a_table_without_a_schema_have_a_caveat_where_users_share_them(tmp_path: Path) -> None:
    """Sessions with other search paths read another table."""

    def caveats(rule: dict[str, Any], tables: str, folder: str) -> list[str]:
        rows = [
            make_row(
                at=DAY_MS + at,
                standardizedSql="SELECT a FROM t",
                tables=tables,
                isReadOnly=True,
                userName=name,
            )
            for at, name in enumerate(("ann", "bob"))
        ]
        job = Job(
            write_days(rows, tmp_path / folder), DAYS[1], DAYS[1], read_rules([rule]), read_rules([rule])
        )
        with duckdb.connect(config={"threads": 1}) as connection:
            found: list[str] = run_replay(connection, job)["caveats"]
        return found

    assert "tables-without-schema" in caveats(SHARED, '["t"]', "1")
    assert "tables-without-schema" not in caveats(SHARED, '["s.t"]', "2")
    assert "tables-without-schema" not in caveats(OWN, '["t"]', "3")
