"""Find hits that may be stale: a table that they read changed in the log, and no marker ended the result.

Section "Risk" of the definition (docs/replay.md). Writes past the Gateway are not in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from analytics.replay.arrays import make_schema, registered
from analytics.reports.sql import defines, find_changed_tables, learn_views, read_tables
from logs.definitions import HIT, REFUSED
from rules.tables.names import NameIndex

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from rules.tables.warehouse import WarehouseTables


def find_risk(
    connection: DuckDBPyConnection, table: str, *, warehouse: WarehouseTables
) -> dict[int, tuple[int, int]]:
    """Return (low, high) counts of possibly stale hits in ``table``, by the index of their rule.

    A hit counts as low if its result was there before the change, and as high if its execution had started.
    """
    changing = connection.execute(
        f"""
        SELECT DISTINCT statement.text, outcome.table_list, outcome.statement, table_list.text
        FROM {table} AS outcome JOIN statement USING (statement) JOIN table_list USING (table_list)
        WHERE {_IS_CHANGE}
        """  # noqa: S608
    ).fetchall()
    if not changing:
        return {}
    read = [
        (text, number, statement, read_tables(tables, database=warehouse.database))
        for text, number, statement, tables in changing
    ]
    views = learn_views(((text, tables) for text, _, _, tables in read), warehouse)
    changed = []
    for text, number, statement, tables in read:
        names = find_changed_tables(text, tables, database=warehouse.database)
        # To write to a view changes its tables.
        names = names if defines(text) else views.reach(names)
        changed += [{"statement": statement, "table_list": number, "name": name} for name in names]
    index = NameIndex({row["name"] for row in changed})
    reading = [
        {"table_list": number, "name": name}
        for number, text in connection.execute("SELECT table_list, text FROM table_list").fetchall()
        for name in index.find_any(views.reach(read_tables(text, database=warehouse.database)))
    ]
    with registered(
        connection,
        changed_table=pa.Table.from_pylist(changed, _CHANGED),
        read_table=pa.Table.from_pylist(reading, _READ),
    ):
        rows = connection.execute(
            f"""
            WITH change AS (
                SELECT DISTINCT name, requested_at + work_ms AS changed_at
                FROM {table} AS outcome JOIN changed_table USING (statement, table_list)
                WHERE {_IS_CHANGE}
            ), hit AS (
                SELECT n, rule, requested_at, started, born, name
                FROM {table} JOIN read_table USING (table_list)
                WHERE is_counted AND {HIT.of("status")}
            ), risk AS (
                SELECT n, rule, bool_or(changed_at > born) AS is_low, bool_or(changed_at > started) AS is_high
                FROM hit ASOF JOIN change ON hit.name = change.name AND hit.requested_at >= change.changed_at
                GROUP BY n, rule
            )
            SELECT rule, count(*) FILTER (is_low), count(*) FILTER (is_high) FROM risk GROUP BY rule
            """  # noqa: S608
        ).fetchall()
    return {rule: (low, high) for rule, low, high in rows}


_IS_CHANGE: Final = f"outcome.is_change AND NOT outcome.is_failing AND {REFUSED.not_of('outcome.status')}"
_CHANGED: Final = make_schema(statement=pa.int64(), table_list=pa.int64(), name=pa.string())
_READ: Final = make_schema(table_list=pa.int64(), name=pa.string())
