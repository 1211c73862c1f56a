"""SQL over ``proxy_logs`` for each number of the summaries. Contract: "Summary records".

`QUERIES` is the only place of these queries. docs/queries.sql, ``GET /analytics/queries``, the verification
of documents and the tests read it.
"""

# Queries consist of constants and quoted texts.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from analytics.published.pieces import (
    EXACT_HOUR,
    EXACT_LATEST,
    HIGH_COST,
    IN_PERIOD,
    LATEST,
    LOW_HIT_RATE,
    MEAN_HIT_TIME,
    MEAN_MISS_TIME,
    NOT_CACHED_WAREHOUSE,
    REPEAT_MISSES,
    STORED_SIZES,
    WAREHOUSE,
    count,
    hours,
    iso,
    latest,
    mean_time,
    opportunities,
    sum_bytes,
    totals,
)
from analytics.savings.sql import SAVINGS_ABOUT, SAVINGS_FIELDS, SAVINGS_SQL
from analytics.summaries.documents.year import ACTIVITY_DAYS
from logs.definitions import (
    BYPASSED,
    HIT,
    HOUR,
    MISS,
    NOT_CACHED,
    PASSED,
    REQUEST,
    STORED,
    STORED_MISS,
    TIMED,
    WAREHOUSE_TIME,
    hash_sql,
)
from logs.quoting import quote_value
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import date


class PublishedQuery(JsonStruct):
    """A query over `proxy_logs`, and the fields that it gives."""

    name: Annotated[
        str, Meta(description="The document, with the array in it if the rows are the elements of an array.")
    ]
    about: str
    text: Annotated[str, Meta(description="SQL. A parameter is written as `$first`.")]
    parameters: Annotated[
        list[str],
        Meta(
            description="`first` and `last`: days (`'YYYY-MM-DD'`), both included. Of alerts also `hours`: "
            "the window, and `now`: epoch milliseconds. `about` explains the values of `savings`."
        ),
    ]
    fields: list[str]

    def over(self, first: date, last: date, *, user: str | None = None, exact: bool = False) -> str:
        """Return the statement for a period (both days included), for a tenant or for one of its users.

        With ``exact``, it reads the columns ``_hour`` and ``_row`` of a verification. They decide two things
        that ``proxy_logs`` leaves open: the hour of an entry whose timestamp is outside of its day, and the
        latest of several entries without a ``logId``.
        """
        sql = self.text
        if exact:
            sql = sql.replace(HOUR, EXACT_HOUR).replace(LATEST, EXACT_LATEST)
        sql = sql.replace("$first", f"'{first}'").replace("$last", f"'{last}'")
        # Replace this last, because a user's name may contain any text.
        return (
            sql if user is None else sql.replace("WHERE day", f"WHERE userName = {quote_value(user)} AND day")
        )


_TIMES: Final = (
    "averageResponseTime", "cacheHitAverageResponseTime", "cacheMissAverageResponseTime",
    "minResponseTime", "maxResponseTime",
)  # fmt: skip
_DAY_FIELDS: Final = (
    "uniqueUsers", "cacheHits", "cacheMisses", "totalHits", "cachedBytes", "passThroughBytes", *_TIMES,
)  # fmt: skip
_STATEMENT_FIELDS: Final = (
    "queryHash", "statement", "cacheKey", "matchedRule", "cacheStatus", "cacheHits", "cacheMisses",
    "responseCode", "averageResponseTime", "responseSize", "count", "warehouseExecutionTimeMs",
    "firstRequestTime", "lastRequestTime",
)  # fmt: skip
_HOUR_FIELDS: Final = (
    "hour", "queries", "totalHits", "cacheHits", "cacheMisses", "cachedBytes", "passThroughBytes",
    "cacheHitAverageResponseTime", "cacheMissAverageResponseTime", "users",
)  # fmt: skip
_MONTH_FIELDS: Final = (
    "totalQueries", "totalUsers", "totalCacheHits", "totalCacheMisses", "totalHits",
    "totalCachedBytes", "totalPassThroughBytes", *_TIMES,
)  # fmt: skip
_DATE_FIELDS: Final = (
    "date", "queries", "users", "cacheHits", "totalHits", "dataTransfer", "cacheSize", "cacheElements",
)  # fmt: skip
_RULE_FIELDS: Final = (
    "ruleId", "ruleName", "queriesMatched", "totalExecutions", "cacheHits", "cacheMisses", "hitRate",
    "warehouseTimeSavedMs", "requests", "notCached",
)  # fmt: skip
_USER_FIELDS: Final = (
    "userId", "uniqueQueries", "cacheHits", "totalHits", "averageResponseTime", "minResponseTime",
    "maxResponseTime",
)  # fmt: skip
_OPPORTUNITY_FIELDS: Final = (
    "queryHash", "statement", "executionCount", "cacheMisses", "totalWarehouseTimeMs", "matchedRule",
    "suggestedAction",
)  # fmt: skip


_PARAMETERS: Final = ("first", "last", "before", "suspend", "minimum", "bucket")


def _query(name: str, about: str, sql: str, fields: Iterable[str]) -> PublishedQuery:
    text = sql.strip()
    return PublishedQuery(
        name=name,
        about=about,
        text=text,
        parameters=[parameter for parameter in _PARAMETERS if f"${parameter}" in text],
        fields=list(fields),
    )


def _queries() -> Iterator[PublishedQuery]:
    yield _query(
        "day",
        "The totals of a day.",
        totals(
            queries="",
            users="uniqueUsers",
            hits="cacheHits",
            misses="cacheMisses",
            total="totalHits",
            hit_bytes="cachedBytes",
            other_bytes="passThroughBytes",
        ),
        _DAY_FIELDS,
    )
    yield _query(
        "day.queries",
        "One record per distinct statement. Entries without a statement count only in the totals. A time "
        "outside of the years 0001 to 9999 is null.",
        f"""
SELECT
    {hash_sql()} AS queryHash,
    standardizedSql AS statement,
    {latest("cacheKey")} AS cacheKey,
    {latest("matchedRule")} AS matchedRule,
    {latest("cacheStatus")} AS cacheStatus,
    {count(HIT)} AS cacheHits,
    {count(MISS)} AS cacheMisses,
    {latest("statusCode")} AS responseCode,
    coalesce({mean_time()}, 0) AS averageResponseTime,
    {latest("responseSize")} AS responseSize,
    count(*) AS count,
    {WAREHOUSE_TIME} AS warehouseExecutionTimeMs,
    {iso("min(timestamp)")} AS firstRequestTime,
    {iso("max(timestamp)")} AS lastRequestTime
FROM proxy_logs {IN_PERIOD} AND standardizedSql IS NOT NULL
GROUP BY standardizedSql
ORDER BY count DESC, queryHash""",
        _STATEMENT_FIELDS,
    )
    yield _query(
        "day.hourlyActivity",
        "24 entries by hour (UTC). In an hour without log entries all numbers are 0.",
        hours(hit_mean=f"coalesce({MEAN_HIT_TIME}, 0)", miss_mean=f"coalesce({MEAN_MISS_TIME}, 0)"),
        _HOUR_FIELDS,
    )
    yield _query(
        "month",
        "The totals of a month. Users and statements are distinct over the whole month.",
        totals(
            queries="totalQueries",
            users="totalUsers",
            hits="totalCacheHits",
            misses="totalCacheMisses",
            total="totalHits",
            hit_bytes="totalCachedBytes",
            other_bytes="totalPassThroughBytes",
        ),
        _MONTH_FIELDS,
    )
    yield _query(
        "month.hourlyActivity",
        "24 entries by hour of day (UTC) over all days. A mean without data is null, not 0.",
        hours(hit_mean=MEAN_HIT_TIME, miss_mean=MEAN_MISS_TIME),
        _HOUR_FIELDS,
    )
    yield _query(
        "year",
        "totalQueries counts statements that were stored in the cache or served from it. cacheElements "
        "counts each cacheKey with a MISS once per day; cacheSize adds the size of its last MISS of the day.",
        f"""
SELECT
    count(DISTINCT userName) AS totalUsers,
    count(DISTINCT standardizedSql) FILTER (
        {HIT} OR ({STORED})
    ) AS totalQueries,
    {count(HIT)} AS totalCacheHits,
    {count(REQUEST)} AS totalHits,
    (SELECT coalesce(sum(size), 0) FROM ({STORED_SIZES}
    )) AS cacheSize,
    count(DISTINCT (day, cacheKey)) FILTER ({STORED}) AS cacheElements
FROM proxy_logs {IN_PERIOD}""",
        ("totalUsers", "totalQueries", "totalCacheHits", "totalHits", "cacheSize", "cacheElements"),
    )
    yield _query(
        "year.last365daysQueryActivity",
        "The days with data among the 365 that end on the year's last day with data, the oldest first. "
        "$first is the second of January of the year before.",
        f"""
WITH stored AS (
    SELECT day, count(*) AS elements, sum(size) AS size
    FROM ({STORED_SIZES}
    )
    GROUP BY day
)
SELECT
    replace(day, '-', '/') AS date,
    count(DISTINCT standardizedSql) AS queries,
    count(DISTINCT userName) AS users,
    {count(HIT)} AS cacheHits,
    {count(REQUEST)} AS totalHits,
    {sum_bytes(HIT)} AS dataTransfer,
    coalesce(any_value(stored.size), 0) AS cacheSize,
    coalesce(any_value(stored.elements), 0) AS cacheElements
FROM proxy_logs LEFT JOIN stored USING (day) {IN_PERIOD}
GROUP BY day
QUALIFY day::DATE > max(day::DATE) OVER () - {ACTIVITY_DAYS}
ORDER BY day""",
        _DATE_FIELDS,
    )
    yield _query(
        "rules",
        "Distinct statements of a year.",
        f"""
SELECT
    count(DISTINCT standardizedSql) AS totalQueries,
    count(DISTINCT standardizedSql) FILTER ({PASSED}) AS uncachedQueries,
    count(DISTINCT standardizedSql) FILTER ({BYPASSED}) AS bypassedQueries
FROM proxy_logs {IN_PERIOD}""",
        ("totalQueries", "uncachedQueries", "bypassedQueries"),
    )
    yield _query(
        "rules.rules",
        "hitRate has four decimals, rounded half up. warehouseTimeSavedMs is the number of hits times the "
        "mean warehouse time of the rule's own MISS entries; only the product is rounded, half up. It is "
        "negative if the times are. // rounds negative numbers towards 0, so the query uses %. requests "
        "counts every status, also BLOCKED and errors. notCached is cacheMisses without MISS.",
        f"""
SELECT
    * EXCLUDE (saved, parts, requests, notCached),
    coalesce((saved - (saved % parts + parts) % parts) // parts, 0) AS warehouseTimeSavedMs,
    requests,
    notCached
FROM (SELECT
    matchedRule AS ruleId,
    {latest("matchedRuleName")} AS ruleName,
    count(DISTINCT standardizedSql) AS queriesMatched,
    {count(REQUEST)} AS totalExecutions,
    {count(HIT)} AS cacheHits,
    {count(MISS)} AS cacheMisses,
    coalesce((20000 * {count(HIT)}
        + {count(REQUEST)})
        // (2 * nullif({count(REQUEST)}, 0)), 0)
        / 10000 AS hitRate,
    2 * {count(HIT)}
        * {WAREHOUSE_TIME} FILTER ({STORED_MISS})
        + count(warehouseExecutionTimeMs) FILTER ({STORED_MISS}) AS saved,
    2 * nullif(count(warehouseExecutionTimeMs) FILTER ({STORED_MISS}), 0) AS parts,
    count(*) AS requests,
    {count(NOT_CACHED)} AS notCached
FROM proxy_logs {IN_PERIOD} AND matchedRule IS NOT NULL
GROUP BY matchedRule)
ORDER BY totalExecutions DESC, ruleId""",
        _RULE_FIELDS,
    )
    yield _query(
        "opportunities.repeatMisses",
        "Three or more MISS, and more MISS than hits.",
        opportunities(
            executions=REQUEST,
            missed=MISS,
            time=WAREHOUSE,
            condition="misses >= 3 AND misses > hits",
            action=REPEAT_MISSES,
        ),
        _OPPORTUNITY_FIELDS,
    )
    yield _query(
        "opportunities.highCostUncached",
        "Two or more PASSTHROUGH or BYPASS. Counts and times are of these entries only.",
        opportunities(
            executions=NOT_CACHED,
            missed=NOT_CACHED,
            time=NOT_CACHED_WAREHOUSE,
            condition="executionCount >= 2",
            action=HIGH_COST,
        ),
        _OPPORTUNITY_FIELDS,
    )
    yield _query(
        "opportunities.lowHitRate",
        "20 or more executions, at least one HIT or MISS, and less than 20 percent hits.",
        opportunities(
            executions=REQUEST,
            missed=MISS,
            time=WAREHOUSE,
            condition="executionCount >= 20 AND hits + misses >= 1 AND 5 * hits < executionCount",
            action=LOW_HIT_RATE,
        ),
        _OPPORTUNITY_FIELDS,
    )
    yield _query(
        "users",
        "The whole history: $first and $last are its first and its last day.",
        f"SELECT count(DISTINCT userName) AS totalUsers FROM proxy_logs {IN_PERIOD}",
        ("totalUsers",),
    )
    yield _query(
        "users.users",
        "One record per user of the whole history.",
        f"""
SELECT
    userName AS userId,
    count(DISTINCT standardizedSql) AS uniqueQueries,
    {count(HIT)} AS cacheHits,
    {count(REQUEST)} AS totalHits,
    coalesce({mean_time()}, 0) AS averageResponseTime,
    coalesce(min({TIMED.column}) FILTER ({TIMED}), 0) AS minResponseTime,
    coalesce(max({TIMED.column}) FILTER ({TIMED}), 0) AS maxResponseTime
FROM proxy_logs {IN_PERIOD} AND userName IS NOT NULL
GROUP BY userName ORDER BY totalHits DESC, userId""",
        _USER_FIELDS,
    )

    yield _query("savings", SAVINGS_ABOUT, SAVINGS_SQL, SAVINGS_FIELDS)


#: Every published query by name, in the order of the documentation.
QUERIES: Final[Mapping[str, PublishedQuery]] = {query.name: query for query in _queries()}
