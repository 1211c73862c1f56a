"""Stale risk: hits whose result is older than a change of a table that they read.

The only source is the log. A change that does not pass the Gateway is not in it.
"""

# Queries consist of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from analytics.changed_tables import tables_sql, target_sql
from analytics.reports.reading import ReportHead, ReportQuery
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from datetime import date

    from analytics.reports.reading import LogReader, Window

#: Older changes are ignored, because few results live longer.
LOOK_BACK_DAYS: Final = 7
#: ``cacheAgeSeconds`` is rounded down, so the result may be this many milliseconds older.
_ROUNDING_MS: Final = 999
_MAX_FINDINGS: Final = 1_000
_STALE: Final = f"""
WITH changes AS (
    SELECT
        timestamp + greatest(coalesce(warehouseExecutionTimeMs, 0), 0) AS changedAt,
        matchedRule AS changedBy,
        {target_sql("standardizedSql")} AS target,
        {tables_sql("tables")} AS names
    FROM proxy_logs
    WHERE day BETWEEN $earliest AND $last AND (isDataChange OR isDDL) AND timestamp IS NOT NULL
        AND cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH', 'HOLD')
),
changed AS (
    SELECT
        changedAt, changedBy,
        unnest(CASE WHEN list_contains(names, target) THEN [target] ELSE names END) AS name
    FROM changes
),
hits AS (
    SELECT
        row_number() OVER () AS hit, timestamp AS servedAt,
        timestamp - 1000 * cacheAgeSeconds::BIGINT AS bornAt,
        matchedRule, logId, list_distinct({tables_sql("tables")}) AS names
    FROM proxy_logs
    WHERE day BETWEEN $first AND $last AND cacheStatus = 'HIT' AND cacheAgeSeconds IS NOT NULL
        AND timestamp IS NOT NULL
),
served AS (SELECT * EXCLUDE (names), unnest(names) AS name FROM hits),
risky AS (
    SELECT served.*, changed.changedBy, changed.changedAt
    FROM served ASOF JOIN changed ON served.name = changed.name AND served.servedAt >= changed.changedAt
    WHERE changed.changedAt > served.bornAt + {_ROUNDING_MS}
)
"""

_FINDINGS: Final = (
    _STALE
    + f"""
SELECT
    matchedRule AS ruleId, name AS "table", changedBy, count(*) AS hits, max(servedAt) AS lastAt,
    arg_max(logId, (servedAt, logId)) AS example, max(servedAt - changedAt) AS longestMs
FROM risky GROUP BY ALL ORDER BY hits DESC, ruleId, "table", changedBy LIMIT {_MAX_FINDINGS}"""
)
_TOTALS: Final = (
    _STALE
    + """
SELECT
    matchedRule AS ruleId, count(*) AS hits,
    count(*) FILTER (hit IN (SELECT hit FROM risky)) AS atRisk
FROM hits GROUP BY matchedRule ORDER BY ruleId"""
)


class StaleRule(JsonStruct):
    rule_id: str | None
    hits: Count
    at_risk: Count


class StaleFinding(JsonStruct):
    """Hits that were older than a change of a table. A hit that reads several tables counts in each."""

    rule_id: str | None
    table: str
    changed_by: Annotated[
        str | None, Meta(description="The rule that the changing statement matched; null for none.")
    ]
    hits: Count
    last_at: Annotated[int, Meta(description="The last such hit, in epoch milliseconds.")]
    example: Annotated[str | None, Meta(description="The `logId` of the last such hit.")]
    longest_ms: Annotated[Count, Meta(description="The longest time from a change to such a hit.")]


class StaleReport(ReportHead):
    """Hits whose result may have been stale. Numbers cover hits with a known age."""

    hits: Annotated[Count, Meta(description="All hits with a known age.")]
    at_risk: Annotated[
        Count, Meta(description="Hits that read a table which changed after their result was made.")
    ]
    rules: list[StaleRule]
    findings: list[StaleFinding]
    caveats: list[str]


def stale_report(log: LogReader, *, window: Window) -> StaleReport:
    """Return hits that may have been stale, by rule, table and the rule that the changing statement matched.

    Raises:
        ApiError: a query failed.
    """
    days = {"first": window.first, "last": window.last}
    statements = {"findings": _fill(_FINDINGS, **days), "rules": stale_totals_sql(**days)}
    rules = msgspec.convert(log.rows(statements["rules"]), list[StaleRule])
    return StaleReport(
        from_=window.first,
        to=window.last,
        hits=sum(rule.hits for rule in rules),
        at_risk=sum(rule.at_risk for rule in rules),
        rules=[rule for rule in rules if rule.at_risk],
        findings=msgspec.convert(log.rows(statements["findings"]), list[StaleFinding]),
        caveats=["writes-past-the-gateway-are-invisible", "hits-without-an-age-are-left-out"],
        queries=[ReportQuery(name=name, sql=sql) for name, sql in statements.items()],
    )


#: The query of `stale_totals_sql` with the parameters ``$first`` and ``$last``.
STALE_TOTALS: Final = _TOTALS.replace("$earliest", f"($first::DATE - {LOOK_BACK_DAYS})::VARCHAR").strip()


def stale_totals_sql(*, first: date, last: date) -> str:
    """Return the query for ``hits`` and ``atRisk`` by ``ruleId``. Hits without an age are left out."""
    return _fill(_TOTALS, first=first, last=last)


def _fill(sql: str, *, first: date, last: date) -> str:
    earliest = days_before(first, LOOK_BACK_DAYS)
    for name, day in (("earliest", earliest), ("first", first), ("last", last)):
        sql = sql.replace(f"${name}", f"'{day}'")
    return sql.strip()
