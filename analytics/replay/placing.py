"""Find the ruleset in force and the restart of each request, and the values that its result varies by.

Section "Keys" of the definition (docs/replay.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from analytics.replay.arrays import make_schema, registered
from rules.language import VARY_COLUMNS, Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import Gateway, Ruleset
    from rules.language import Rule

#: The column of ``request`` with the number of the text in a column that results can vary by.
NUMBER_OF: Final = {
    column: f"vary_{number}" if column != "userName" else "user_name"
    for number, column in enumerate(VARY_COLUMNS)
}
_VARYING: Final = make_schema(rule=pa.int64(), vary_set=pa.int64())


def make_placed(connection: DuckDBPyConnection, rulesets: Sequence[Ruleset], restarts: Sequence[int]) -> None:
    """Create ``placed``: the requests with their ``ruleset`` (its index) and ``restart`` (its number)."""
    starts = _numbered([ruleset.starts_at for ruleset in rulesets[1:]])
    with registered(connection, ruleset_start=starts, restart_time=_numbered(sorted(restarts))):
        connection.execute(
            """
            CREATE OR REPLACE TEMP TABLE placed AS
            SELECT request.* EXCLUDE (day, took_ms), coalesce(ruleset_start.number, 0) AS ruleset,
                coalesce(restart_time.number, 0) AS restart
            FROM request
            ASOF LEFT JOIN (
                SELECT starts_at, max(number) AS number FROM restart_time GROUP BY starts_at
            ) AS restart_time ON requested_at >= restart_time.starts_at
            ASOF LEFT JOIN (
                SELECT starts_at, max(number) AS number FROM ruleset_start GROUP BY starts_at
            ) AS ruleset_start ON requested_at >= ruleset_start.starts_at
            """
        )


def _numbered(times: Sequence[int]) -> pa.Table:
    return pa.table(
        {
            "starts_at": pa.array(times, pa.int64()),
            "number": pa.arange(1, len(times) + 1),  # type: ignore[attr-defined]
        }
    )


def make_varied(connection: DuckDBPyConnection, rules: Sequence[Rule], gateway: Gateway) -> str:
    """Create ``varying_rule`` and ``varied``: the rules that vary, and their values by number.

    Return the SQL for the values that a row of ``placed`` varies by, given its ``vary_set``. A combination
    with a null has no number.
    """
    columns_of = {index: _columns_of(rule, gateway) for index, rule in enumerate(rules)}
    sets = sorted({columns for columns in columns_of.values() if columns})
    table = pa.Table.from_pylist(
        [
            {"rule": index, "vary_set": sets.index(columns)}
            for index, columns in columns_of.items()
            if columns
        ],
        _VARYING,
    )
    lists = [f"[{', '.join(NUMBER_OF[column] for column in columns)}]" for columns in sets]
    parts = [
        f"SELECT DISTINCT {number} AS vary_set, {values} AS vary_values FROM request"  # noqa: S608
        f" WHERE {' AND '.join(f'{NUMBER_OF[column]} IS NOT NULL' for column in sets[number])}"
        for number, values in enumerate(lists)
    ]
    source = " UNION ALL ".join(parts) or "SELECT 0 AS vary_set, []::BIGINT[] AS vary_values WHERE false"
    with registered(connection, new_rule=table):
        connection.execute("CREATE OR REPLACE TEMP TABLE varying_rule AS FROM new_rule")
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE varied AS"  # noqa: S608
        f" SELECT row_number() OVER () AS vary, vary_set, vary_values FROM ({source})"
    )
    cases = "".join(f" WHEN {number} THEN {values}" for number, values in enumerate(lists))
    return f"CASE varying_rule.vary_set{cases} END" if cases else "[]::BIGINT[]"


def _columns_of(rule: Rule, gateway: Gateway) -> tuple[str, ...]:
    if rule.action is not Action.CACHE:
        return ()
    if not rule.vary_by and gateway.keys_per_user:
        return ("userName",)
    return tuple(sorted(rule.vary_by or ()))
