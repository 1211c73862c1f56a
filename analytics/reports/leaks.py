"""Leaks: one cached result of a statement whose result depends on who asks, served to several users."""

# Queries are made of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.reports.per_user import PER_USER_FUNCTIONS

if TYPE_CHECKING:
    from datetime import date

    from analytics.reports.reading import LogReader, Window

_MAX_FINDINGS: Final = 1_000
#: Users of a finding that are named.
_MAX_USERS: Final = 10
_SERVED: Final = """
WITH served AS (
    SELECT cacheKey, matchedRule, standardizedSql, count(*) AS served, count(DISTINCT userName) AS users,
        list(DISTINCT userName) AS names, bool_or(hasNonDeterministicFunctions) AS nonDeterministic
    FROM proxy_logs
    WHERE day BETWEEN '{first}' AND '{last}' AND cacheKey IS NOT NULL AND userName IS NOT NULL
        AND cacheStatus IN ('HIT', 'MISS', 'HOLD')
    GROUP BY cacheKey, matchedRule, standardizedSql
)
"""
_TOTALS: Final = _SERVED + "SELECT count(*) AS keys, count(*) FILTER (users > 1) AS sharedKeys FROM served"
_FINDINGS: Final = (
    _SERVED
    + f"""
, graded AS (
    SELECT *, CASE WHEN regexp_matches(standardizedSql, '{PER_USER_FUNCTIONS}') THEN 'certain'
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


def leaks_report(log: LogReader, *, window: Window) -> dict[str, Any]:
    """Return ``{from, to, keys, sharedKeys, findings, queries}``.

    ``certain``: the statement calls a function whose result depends on the user. ``likely``: it calls a
    non-deterministic function. Sharing by itself is what a cache is for: ``sharedKeys`` of ``keys`` are
    shared.

    Raises:
        ApiError: a query failed.
    """
    days = {"first": window.first, "last": window.last}
    statements = {"findings": leak_findings_sql(**days), "totals": _fill(_TOTALS, **days)}
    findings, (totals,) = (log.rows(sql) for sql in statements.values())
    return {
        **window.as_json(),
        **totals,
        "findings": [
            {**row, "userCount": len(row["users"]), "users": row["users"][:_MAX_USERS]} for row in findings
        ],
        "queries": [{"name": name, "sql": sql} for name, sql in statements.items()],
    }


def leak_findings_sql(*, first: date, last: date) -> str:
    """Return the query of ``grade``, ``ruleId``, ``statement``, ``keys``, ``served`` and ``users``."""
    return _fill(_FINDINGS, first=first, last=last)


def _fill(sql: str, *, first: date, last: date) -> str:
    return sql.replace("{first}", str(first)).replace("{last}", str(last)).strip()
