"""Leaks: a cached result that depends on the user and was served to several users."""

# Queries consist of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from analytics.reports.per_user import is_per_user_sql, reads_tables_sql
from analytics.reports.reading import ReportHead, ReportQuery
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from analytics.reports.reading import LogReader, Window

LeakGrade: TypeAlias = Literal["certain", "likely"]

_MAX_FINDINGS: Final = 1_000
#: The most users that a finding names.
_MAX_USERS: Final = 10
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


class LeakFinding(JsonStruct):
    """A statement whose cached results several users got."""

    grade: Annotated[
        LeakGrade,
        Meta(
            description="`certain`: it calls a function of the user or session, or reads a table of "
            "`warehouse.perUserTables`. `likely`: it calls a non-deterministic function."
        ),
    ]
    rule_id: str | None
    statement: str | None
    keys: Annotated[Count, Meta(description="Cache keys that several users shared.")]
    served: Count
    users: Annotated[list[str], Meta(description="The first 10 in order.")]
    user_count: Count


class LeaksReport(ReportHead):
    keys: Annotated[Count, Meta(description="All cache keys that were served.")]
    shared_keys: Annotated[Count, Meta(description="Those served to several users, of any statement.")]
    findings: list[LeakFinding]


def leaks_report(log: LogReader, *, window: Window, per_user_tables: Sequence[str]) -> LeaksReport:
    """Return statements whose cached results depend on the user and were served to several users.

    ``certain``: the statement calls a function whose result depends on the user, or reads a table whose name
    matches one of the patterns in ``per_user_tables``. ``likely``: it calls a
    non-deterministic function. Sharing alone is normal for a cache: ``sharedKeys`` of ``keys`` are shared.

    Raises:
        ApiError: a query failed.
    """
    first, last = window.first, window.last
    statements = {
        "findings": leak_findings_sql(first=first, last=last, per_user_tables=per_user_tables),
        "totals": _fill(_TOTALS, first=first, last=last),
    }
    findings, (totals,) = (log.rows(sql) for sql in statements.values())
    return LeaksReport(
        from_=window.first,
        to=window.last,
        keys=totals["keys"],
        shared_keys=totals["sharedKeys"],
        findings=[
            LeakFinding(
                grade=row["grade"],
                rule_id=row["ruleId"],
                statement=row["statement"],
                keys=row["keys"],
                served=row["served"],
                users=row["users"][:_MAX_USERS],
                user_count=len(row["users"]),
            )
            for row in findings
        ],
        queries=[ReportQuery(name=name, sql=sql) for name, sql in statements.items()],
    )


#: The query of `leak_findings_sql` without ``per_user_tables``, with the parameters ``$first`` and ``$last``.
LEAK_FINDINGS: Final = _FINDINGS.replace("{differs}", "false").strip()


def leak_findings_sql(*, first: date, last: date, per_user_tables: Sequence[str]) -> str:
    """Return the query of ``grade``, ``ruleId``, ``statement``, ``keys``, ``served`` and ``users``."""
    return _fill(_FINDINGS, first=first, last=last, per_user_tables=per_user_tables)


def _fill(sql: str, *, first: date, last: date, per_user_tables: Sequence[str] = ()) -> str:
    days = sql.replace("$first", f"'{first}'").replace("$last", f"'{last}'")
    return days.replace("{differs}", reads_tables_sql(per_user_tables)).strip()
