"""Leaks, stale hits, replay and invalidation take the same spellings for one table: those of the judge."""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

from analytics.replay.count import find_risk
from analytics.reports.leak_sql import leak_findings_sql
from analytics.reports.stale_sql import learned_views_sql, stale_totals_sql
from rules.language import complete_rule
from rules.lint import lint_ruleset
from rules.table_invalidation import find_rules
from rules.tables.warehouse import ANY_TABLES, WarehouseTables
from tests.rules.tables import judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DAY = dt.date(2026, 3, 2)
WORDS = ("hr", "HR", "Hr", "people", "PEOPLE", "public", "prod", "ÄRA", "ära", "a.b", "")
QUOTES = ("{}", "{}", "{}", '"{}"', "`{}`", "[{}]", " {} ", '"{}')
COLUMNS: dict[str, pa.DataType] = {
    "day": pa.string(),
    "timestamp": pa.int64(),
    "warehouseExecutionTimeMs": pa.int32(),
    "matchedRule": pa.string(),
    "standardizedSql": pa.string(),
    "tables": pa.string(),
    "isDataChange": pa.bool_(),
    "isDDL": pa.bool_(),
    "cacheStatus": pa.string(),
    "cacheAgeSeconds": pa.int32(),
    "logId": pa.string(),
    "cacheKey": pa.string(),
    "userName": pa.string(),
    "hasNonDeterministicFunctions": pa.bool_(),
    "adapterType": pa.string(),
}
SCHEMA = pa.schema(list(COLUMNS.items()))


def spell(chance: random.Random) -> str:
    words = (chance.choice(WORDS) for _ in range(chance.randint(1, 4)))
    return ".".join(chance.choice(QUOTES).format(word) for word in words)


def make_log(rows: Iterable[tuple[object, ...]]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    columns = [list(column) for column in zip(*rows, strict=True)]
    connection.register("proxy_logs", pa.table(columns, schema=SCHEMA))
    return connection


def hit(rule: str, tables: Sequence[str], user: str = "ann") -> tuple[object, ...]:
    text = json.dumps(tables)
    own = (str(DAY), 60_000, 0, rule, "SELECT", text, False, False)
    return (*own, "HIT", 30, rule, rule, user, False, "duckdb")


def change(statement: str, tables: Sequence[str], *, is_ddl: bool = False) -> tuple[object, ...]:
    text = json.dumps(tables)
    own = (str(DAY), 50_000, 0, "w", statement, text, not is_ddl, is_ddl)
    return (*own, "BYPASS", None, "w", None, "w", False, "duckdb")


def find_stale(rows: Iterable[tuple[object, ...]], warehouse: WarehouseTables = ANY_TABLES) -> set[str]:
    sql = stale_totals_sql(first=DAY, last=DAY, warehouse=warehouse)
    return {rule for rule, _, at_risk in make_log(rows).execute(sql).fetchall() if at_risk}


def replay(names: Sequence[str], changed: str, warehouse: WarehouseTables) -> set[int]:
    """Return the numbers of the names whose hits are at risk."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE statement AS SELECT 1 AS statement, 'CALL p()' AS text")
    lists = [json.dumps([name]) for name in (*names, changed)]
    numbers = list(range(len(lists)))
    connection.execute(
        "CREATE TABLE table_list AS SELECT unnest($1) AS table_list, unnest($2) AS text", [numbers, lists]
    )
    connection.execute(
        f"""
        CREATE TABLE outcome AS SELECT table_list AS n, 1 AS statement, table_list, table_list AS rule,
            table_list = {len(names)} AS is_change, false AS is_failing, true AS is_counted,
            if(table_list = {len(names)}, 'BYPASS', 'HIT') AS status, 0 AS work_ms,
            if(table_list = {len(names)}, 50, 60) AS requested_at, 10 AS started, 20 AS born
        FROM table_list
        """
    )
    return set(find_risk(connection, "outcome", warehouse=warehouse))


@pytest.mark.parametrize("database", ["", "prod"])
def test_reports_replay_and_invalidation_agree_with_the_judge_on_5000_pairs(database: str) -> None:
    chance = random.Random(51)  # noqa: S311
    pairs = 0
    for _ in range(10):
        configured = spell(chance)
        # Of equal texts, the first rule decides.
        names = list({spelled.lower(): spelled for spelled in (spell(chance) for _ in range(400))}.values())
        names = names[:250]
        while not configured.strip():
            configured = spell(chance)
        known = [judge.parse(name, database) for name in names]
        expected = {
            number
            for number, name in enumerate(known)
            if judge.compare(judge.parse(configured, database), name) != "different"
        }
        warehouse = WarehouseTables(database=database, per_user=(configured,))
        hits = [hit(str(number), [name], user) for number, name in enumerate(names) for user in ("ann", "bo")]
        leaks = leak_findings_sql(first=DAY, last=DAY, warehouse=warehouse)
        assert {int(row[1]) for row in make_log(hits).execute(leaks).fetchall()} == expected
        stale = find_stale([*hits, change("CALL p()", [configured])], warehouse)
        assert {int(rule) for rule in stale} == expected
        assert replay(names, configured, warehouse) == expected
        rules = [
            complete_rule({"id": f"r{number}", "conditions": {"tables": {"in": [name]}}, "varyBy": []})
            for number, name in enumerate(names)
        ]
        ids = {f"r{number}" for number in expected}
        assert {rule["id"] for rule in find_rules(rules, [configured], warehouse)} == ids
        assert {error.rule_id for error in lint_ruleset({"rules": rules}, tables=warehouse).errors} == ids
        pairs += len(names)
    assert pairs == 2_500


@pytest.mark.parametrize(
    "spelled", ['"hr"."people"', "`hr`.`people`", "prod.hr.people", "people", "HR.PEOPLE"]
)
def test_one_result_for_two_users_is_a_leak_in_every_spelling(spelled: str) -> None:
    log = make_log([hit("r", [spelled], user) for user in ("ann", "bo")])
    warehouse = WarehouseTables(per_user=("hr.people",))
    sql = leak_findings_sql(first=DAY, last=DAY, warehouse=warehouse)
    assert [row[0] for row in log.execute(sql).fetchall()] == ["certain"]
    other = leak_findings_sql(first=DAY, last=DAY, warehouse=WarehouseTables(per_user=("pay.people",)))
    assert len(log.execute(other).fetchall()) == (spelled == "people")


@pytest.mark.parametrize(
    ("changed", "read"),
    [("public.orders", "orders"), ("db..orders", "db.public.orders"), ("orders", "a.orders")],
)
def test_a_change_in_another_spelling_makes_a_hit_stale(changed: str, read: str) -> None:
    assert find_stale([change(f"UPDATE {changed} SET x = ?", [changed]), hit("r", [read])]) == {"r"}


def test_a_view_is_stale_with_its_tables() -> None:
    rows = [hit("view", ["v.open"]), hit("again", ["V.Again"]), hit("other", ["v.other"])]
    write = change("UPDATE sales.orders SET x = ?", ["sales.orders"])
    views = {"v.open": ["Sales.Orders"], "v.again": ["v.open", "v.again"], "v.other": ["sales.items"]}
    warehouse = WarehouseTables.of({"warehouse": {"views": views}})
    assert find_stale([*rows, write]) == set()
    assert find_stale([*rows, write], warehouse) == {"view", "again"}
    assert replay(["v.open", "V.Again", "v.other"], "sales.orders", warehouse) == {0, 1}
    # A write to a view changes its tables, and what else reads them.
    assert find_stale([hit("table", ["sales.orders"]), change("CALL p()", ["v.again"])], warehouse) == {
        "table"
    }
    assert find_rules(
        [complete_rule({"id": "r", "conditions": {"tables": "v.again"}})], ["sales.orders"], warehouse
    )


def test_a_view_that_the_log_creates_is_stale_with_its_tables_unless_the_configuration_has_it() -> None:
    create = change("CREATE OR REPLACE VIEW v.open AS SELECT * FROM sales.orders", ["v.open", "sales.orders"])
    create = (create[0], 1_000, *create[2:-7], *create[-7:])
    rows = [create, hit("view", ["v.open"]), change("UPDATE sales.orders SET x = ?", ["sales.orders"])]
    assert find_stale(rows) == {"view"}
    learned = learned_views_sql(first=DAY, last=DAY, warehouse=WarehouseTables())
    assert make_log(rows).execute(learned).fetchall() == [("v.open", "sales.orders")]
    configured = WarehouseTables.of({"warehouse": {"views": {"v.open": ["sales.items"]}}})
    assert find_stale(rows, configured) == set()
    # To create a view changes no table.
    assert find_stale([create, hit("table", ["sales.orders"])]) == set()
