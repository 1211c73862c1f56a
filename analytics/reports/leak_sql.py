"""SQL that finds leaks in ``proxy_logs``."""

# Queries consist of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.reports.per_user import is_per_user_sql, reads_tables_sql

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

_MAX_FINDINGS: Final = 1_000
_SERVED: Final = """
WITH served AS (
    SELECT cacheKey, matchedRule, standardizedSql, count(*) AS served, count(DISTINCT userName) AS users,
        list(DISTINCT userName) AS names, bool_or(hasNonDeterministicFunctions) AS nonDeterministic,
        bool_or({differs}) AS differs
    FROM proxy_logs
    WHERE day BETWEEN $first AND $last AND cacheKey IS NOT NULL AND userName IS NOT NULL
        AND cacheStatus IN ('HIT', 'MISS', 'HOLD')
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
#: The query of `leak_findings_sql` without ``per_user_tables``, with the parameters ``$first`` and ``$last``.
LEAK_FINDINGS: Final = _FINDINGS.replace("{differs}", "false").strip()


def leak_findings_sql(*, first: date, last: date, per_user_tables: Sequence[str]) -> str:
    """Return the query of ``grade``, ``ruleId``, ``statement``, ``keys``, ``served`` and ``users``."""
    return _fill(_FINDINGS, first=first, last=last, per_user_tables=per_user_tables)


def leak_totals_sql(*, first: date, last: date) -> str:
    """Return the query of ``keys`` and ``sharedKeys``."""
    return _fill(_TOTALS, first=first, last=last)


def _fill(sql: str, *, first: date, last: date, per_user_tables: Sequence[str] = ()) -> str:
    days = sql.replace("$first", f"'{first}'").replace("$last", f"'{last}'")
    return days.replace("{differs}", reads_tables_sql(per_user_tables)).strip()
