"""Stale risk: hits whose result is older than a change of a table that they read.

From the log alone. A change that does not pass the Gateway is not in the log.
"""

# Queries are made of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from analytics.changed_tables import tables_sql, target_sql

if TYPE_CHECKING:
    from datetime import date

    from analytics.reports.reading import LogReader, Window

#: Older changes are not looked at: few results live longer.
LOOK_BACK_DAYS: Final = 7
#: ``cacheAgeSeconds`` is cut to seconds, so the result may be this much older, in milliseconds.
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
    WHERE day BETWEEN '{{earliest}}' AND '{{last}}' AND (isDataChange OR isDDL) AND timestamp IS NOT NULL
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
        row_number() OVER () AS hit, timestamp AS servedAt, timestamp - 1000 * cacheAgeSeconds AS bornAt,
        matchedRule, logId, list_distinct({tables_sql("tables")}) AS names
    FROM proxy_logs
    WHERE day BETWEEN '{{first}}' AND '{{last}}' AND cacheStatus = 'HIT' AND cacheAgeSeconds IS NOT NULL
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


def stale_report(log: LogReader, *, window: Window) -> dict[str, Any]:
    """Return ``{from, to, hits, atRisk, rules, findings, caveats, queries}``.

    ``findings`` are by rule, table and the rule that the changing statement matched.

    Raises:
        ApiError: a query failed.
    """
    days = {"first": window.first, "last": window.last}
    statements = {"findings": _fill(_FINDINGS, **days), "rules": stale_totals_sql(**days)}
    findings, rules = (log.rows(sql) for sql in statements.values())
    return {
        **window.as_json(),
        "hits": sum(row["hits"] for row in rules),
        "atRisk": sum(row["atRisk"] for row in rules),
        "rules": [row for row in rules if row["atRisk"]],
        "findings": findings,
        "caveats": ["writes-past-the-gateway-are-invisible", "hits-without-an-age-are-left-out"],
        "queries": [{"name": name, "sql": sql} for name, sql in statements.items()],
    }


def stale_totals_sql(*, first: date, last: date) -> str:
    """Return the query of ``hits`` and ``atRisk`` by ``ruleId``. Hits without an age are left out."""
    return _fill(_TOTALS, first=first, last=last)


def _fill(sql: str, *, first: date, last: date) -> str:
    earliest = first - timedelta(days=min(LOOK_BACK_DAYS, first.toordinal() - 1))
    # Not str.format: patterns contain braces.
    for name, day in (("earliest", earliest), ("first", first), ("last", last)):
        sql = sql.replace("{" + name + "}", str(day))
    return sql.strip()
