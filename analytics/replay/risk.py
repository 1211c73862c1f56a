"""Find hits that may be stale: the log shows a change of a table that they read, and no marker for it.

Section "Risk" of the definition (docs/replay.md). Writes past the Gateway are not in the log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import orjson
import pyarrow as pa

from analytics.replay.arrays import make_schema, registered

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.outcome import Outcome

_QUOTES: Final = re.compile(r'["`\[\]]')

#: A name of up to four parts, each of which may be quoted.
_PART: Final = r'(?:"[^"]+"|`[^`]+`|\[[^\]]+\]|[\w$#@-]+)'
_TARGET: Final = re.compile(
    rf"""
    ^\s* (?:
        insert \s+ (?: (?: ignore | overwrite | or \s+ \w+ ) \s+ )? (?: into \s+ )? (?: table \s+ )?
        | replace \s+ (?: into \s+ )? | update \s+ (?: only \s+ )?
        | delete \s+ (?: from \s+ )? (?: only \s+ )?
        | merge \s+ (?: into \s+ )? | copy \s+ (?: into \s+ )? | load \s+ data .*? \s into \s+ table \s+
        | truncate \s+ (?: table \s+ )? (?: only \s+ )?
        | (?: create | alter | drop | undrop | rename | refresh ) \s+ (?: or \s+ replace \s+ )?
          (?: (?: global | local | temp | temporary | transient | external | unlogged | materialized ) \s+ )*
          (?: table | view ) \s+ (?: if \s+ (?: not \s+ )? exists \s+ )? (?: only \s+ )?
    )
    (?P<name> {_PART} (?: \s*\.\s* {_PART} ){{0,3}} )
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def read_tables(text: str | None) -> frozenset[str]:
    """Return the table names in the JSON text of ``tables``, in lower case and without quotes."""
    if text is None:
        return frozenset()
    try:
        names = orjson.loads(text)
    except orjson.JSONDecodeError:
        return frozenset()
    if not isinstance(names, list):
        return frozenset()
    return frozenset(_normalize(name) for name in names if isinstance(name, str))


def find_changed_tables(statement: str, tables: frozenset[str]) -> frozenset[str]:
    """Return the table that a statement names as its target, or all its tables if that is not one of them."""
    match = _TARGET.match(statement)
    target = _normalize(re.sub(r"\s*\.\s*", ".", match["name"])) if match else None
    return frozenset({target}) if target in tables else tables


def _normalize(name: str) -> str:
    return _QUOTES.sub("", name).lower()


def find_risk(connection: DuckDBPyConnection, outcome: Outcome) -> dict[int, tuple[int, int]]:
    """Return by rule how many counted hits are at risk: if they started, and if they were born, before."""
    changes = connection.execute(
        f"""
        SELECT DISTINCT statement.text, changes.table_list, changes.statement, table_list.text
        FROM {outcome.table} AS changes JOIN statement USING (statement) JOIN table_list USING (table_list)
        WHERE {_IS_CHANGE}
        """  # noqa: S608
    ).fetchall()
    if not changes:
        return {}
    changed = [
        {"statement": statement, "table_list": number, "name": name}
        for text, number, statement, tables in changes
        for name in find_changed_tables(text, read_tables(tables))
    ]
    names = {row["name"] for row in changed}
    read = [
        {"table_list": number, "name": name}
        for number, text in connection.execute("SELECT table_list, text FROM table_list").fetchall()
        for name in read_tables(text) & names
    ]
    with registered(
        connection,
        changed_table=pa.Table.from_pylist(changed, _CHANGED),
        read_table=pa.Table.from_pylist(read, _READ),
    ):
        rows = connection.execute(
            f"""
            WITH change AS (
                SELECT DISTINCT name, requested_at + work_ms AS changed_at
                FROM {outcome.table} AS changes JOIN changed_table USING (statement, table_list)
                WHERE {_IS_CHANGE}
            ), hit AS (
                SELECT n, rule, requested_at, started, born, name
                FROM {outcome.table} JOIN read_table USING (table_list)
                WHERE is_counted AND status = 'HIT'
            ), risk AS (
                SELECT n, rule, bool_or(changed_at > born) AS is_low, bool_or(changed_at > started) AS is_high
                FROM hit ASOF JOIN change ON hit.name = change.name AND hit.requested_at >= change.changed_at
                GROUP BY n, rule
            )
            SELECT rule, count(*) FILTER (is_low), count(*) FILTER (is_high) FROM risk GROUP BY rule
            """  # noqa: S608
        ).fetchall()
    return {rule: (low, high) for rule, low, high in rows}


_IS_CHANGE: Final = (
    "changes.is_change AND NOT changes.is_failing AND changes.status NOT IN ('BLOCKED', 'INVALIDATION_ERROR')"
)
_CHANGED: Final = make_schema(statement=pa.int64(), table_list=pa.int64(), name=pa.string())
_READ: Final = make_schema(table_list=pa.int64(), name=pa.string())
