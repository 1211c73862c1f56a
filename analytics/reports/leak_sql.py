"""SQL that finds leaks in ``proxy_logs``."""

# Queries consist of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.reports.per_user import is_per_user_sql, reads_tables_sql
from rules.tables.warehouse import ANY_TABLES

if TYPE_CHECKING:
    from datetime import date

    from rules.tables.warehouse import WarehouseTables

_MAX_FINDINGS: Final = 1_000
#: More than there can be. Without a limit, DuckDB would read the lists of all rows before it drops repeats.
_MAX_LISTS: Final = 2**62
_ROWS: Final = """day BETWEEN $first AND $last AND cacheKey IS NOT NULL AND userName IS NOT NULL
        AND cacheStatus IN ('HIT', 'MISS', 'HOLD')"""
#: The lists of tables of which one differs per user.
_PERSONAL: Final = f"""personal AS (
    SELECT tables FROM (SELECT DISTINCT tables FROM proxy_logs WHERE {_ROWS} LIMIT {_MAX_LISTS})
    WHERE {{reads}}
),
"""
_DIFFERS: Final = "tables IN (FROM personal)"
_SERVED: Final = f"""
WITH {{personal}}served AS (
    SELECT cacheKey, matchedRule, standardizedSql, count(*) AS served, count(DISTINCT userName) AS users,
        list(DISTINCT userName) AS names, bool_or(hasNonDeterministicFunctions) AS nonDeterministic,
        bool_or({{differs}}) AS differs
    FROM proxy_logs
    WHERE {_ROWS}
    GROUP BY cacheKey, matchedRule, standardizedSql
)
"""
_TOTALS: Final = _SERVED + "SELECT count(*) AS keys, count(*) FILTER (users > 1) AS sharedKeys FROM served"
_FINDINGS: Final = (
    _SERVED
    + f"""
, graded AS (
    SELECT *, CASE WHEN {is_per_user_sql("standardizedSql")} OR differs THEN 'certain'
        WHEN nonDeterministic THEN 'likely' END AS grade
    FROM served WHERE users > 1
)
SELECT
    grade, matchedRule AS ruleId, standardizedSql AS statement, count(*) AS keys, sum(served) AS served,
    list_sort(list_distinct(flatten(list(names)))) AS users
FROM graded WHERE grade IS NOT NULL
GROUP BY grade, matchedRule, standardizedSql
ORDER BY grade, served DESC, ruleId, statement LIMIT {_MAX_FINDINGS}"""
)
#: The query of `leak_findings_sql` of a tenant without ``perUserTables``, with ``$first`` and ``$last``.
LEAK_FINDINGS: Final = _FINDINGS.replace("{personal}", "").replace("{differs}", "false").strip()


def leak_findings_sql(*, first: date, last: date, warehouse: WarehouseTables) -> str:
    """Return the query of ``grade``, ``ruleId``, ``statement``, ``keys``, ``served`` and ``users``."""
    return _fill(_FINDINGS, first=first, last=last, warehouse=warehouse)


def leak_totals_sql(*, first: date, last: date) -> str:
    """Return the query of ``keys`` and ``sharedKeys``."""
    return _fill(_TOTALS, first=first, last=last, warehouse=ANY_TABLES)


def _fill(sql: str, *, first: date, last: date, warehouse: WarehouseTables) -> str:
    personal = warehouse.personal
    # Lists of tables repeat, so each is read once.
    lists = _PERSONAL if personal else ""
    filled = sql.replace("{personal}", lists).replace("{differs}", _DIFFERS if personal else "false")
    filled = filled.replace("$first", f"'{first}'").replace("$last", f"'{last}'")
    # Names of tables are last, because they may contain any text.
    return filled.replace("{reads}", reads_tables_sql(personal, warehouse)).strip()
