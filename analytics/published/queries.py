"""The SQL over ``proxy_logs`` that each number of a summary equals. Contract: "Summary records".

`QUERIES` is the only place of these queries. docs/analytics.md, ``GET /analytics/queries``, the verification
of documents and the tests read it.
"""

# Queries are made of constants and of quoted texts.
# ruff: noqa: S608

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analytics.summaries.documents.opportunities import LIST_LENGTH
from analytics.summaries.documents.year import ACTIVITY_DAYS
from analytics.summaries.numbers import FIRST_MS, LAST_MS
from logs.quoting import quote_text, quote_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date
    from typing import Any

_HIT: Final = "cacheStatus = 'HIT'"
_MISS: Final = "cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')"
_COUNTED: Final = "cacheStatus IN ('HIT', 'MISS', 'BYPASS', 'PASSTHROUGH')"
_UNCACHED: Final = "cacheStatus IN ('BYPASS', 'PASSTHROUGH')"
_STORED: Final = "cacheStatus = 'MISS' AND cacheKey IS NOT NULL"
_TIMED: Final = "responseTimeMs > 0"
_IN_PERIOD: Final = "WHERE day BETWEEN $first AND $last"

#: The hour under which an entry counts, and the order that decides which entry of several is the latest.
_HOUR: Final = "(timestamp % 86400000 + 86400000) % 86400000 // 3600000"
_LATEST: Final = "(coalesce(timestamp, 0), coalesce(logId, ''))"
#: The same, exactly, from two columns that a verification reads besides those of ``proxy_logs``.
_EXACT_HOUR: Final = "_hour"
_EXACT_LATEST: Final = "(coalesce(timestamp, 0), coalesce(logId, ''), DATE '1970-01-01' - day::DATE, _row)"


def _count(condition: str) -> str:
    return f"count(*) FILTER ({condition})"


def _bytes(condition: str) -> str:
    return f"coalesce(sum(responseSize) FILTER ({condition} AND responseSize > 0), 0)"


def _mean_time(condition: str = _TIMED) -> str:
    """Return the mean response time, rounded half up; null without data."""
    count = _count(condition)
    total = f"sum(responseTimeMs) FILTER ({condition})"
    return f"(2 * {total}\n        + {count})\n        // (2 * nullif({count}, 0))"


def _mean(total: str, count: str) -> str:
    """Return ``total / count``, rounded half up. ``//`` rounds negative numbers towards 0, so use ``%``."""
    dividend, divisor = f"(2 * {total} + {count})", f"(2 * {count})"
    return f"(({dividend} - ({dividend} % {divisor} + {divisor}) % {divisor}) // {divisor})"


def _latest(column: str) -> str:
    return f"arg_max_null({column}, {_LATEST})"


def _iso(aggregate: str) -> str:
    return (
        f"strftime(make_timestamp_ms(CASE WHEN {aggregate} BETWEEN {FIRST_MS} AND {LAST_MS}\n"
        f"        THEN {aggregate} END), '%Y-%m-%dT%H:%M:%S.%gZ')"
    )


_MEAN_HIT_TIME: Final = _mean_time(f"{_TIMED} AND {_HIT}")
_MEAN_MISS_TIME: Final = _mean_time(f"{_TIMED} AND {_MISS}")

#: The sizes of what was stored: the last MISS of each cache key and day.
_STORED_SIZES: Final = f"""
        SELECT day, greatest(arg_max(responseSize, {_LATEST}), 0) AS size
        FROM proxy_logs
        {_IN_PERIOD} AND {_STORED}
        GROUP BY day, cacheKey"""


def _totals(
    *, queries: str, users: str, hits: str, misses: str, total: str, hit_bytes: str, other_bytes: str
) -> str:
    """Return the query of the totals of a day or a month, which differ in the names of their fields."""
    columns = [
        *([f"count(DISTINCT standardizedSql) AS {queries}"] if queries else []),
        f"count(DISTINCT userName) AS {users}",
        f"{_count(_HIT)} AS {hits}",
        f"{_count(_MISS)} AS {misses}",
        f"{_count(_COUNTED)} AS {total}",
        f"{_bytes(_HIT)} AS {hit_bytes}",
        f"{_bytes('cacheStatus IS DISTINCT FROM ' + quote_text('HIT'))} AS {other_bytes}",
        f"coalesce({_mean_time()}, 0) AS averageResponseTime",
        f"coalesce({_MEAN_HIT_TIME}, 0) AS cacheHitAverageResponseTime",
        f"coalesce({_MEAN_MISS_TIME}, 0) AS cacheMissAverageResponseTime",
        f"coalesce(min(responseTimeMs) FILTER ({_TIMED}), 0) AS minResponseTime",
        f"coalesce(max(responseTimeMs) FILTER ({_TIMED}), 0) AS maxResponseTime",
    ]
    return "SELECT\n    " + ",\n    ".join(columns) + f"\nFROM proxy_logs {_IN_PERIOD}"


def _hours(*, hit_mean: str, miss_mean: str) -> str:
    """Return the query of the 24 hours of day."""
    return f"""
WITH entries AS (
    SELECT *, {_HOUR} AS hour
    FROM proxy_logs {_IN_PERIOD}
)
SELECT
    hours.hour,
    count(DISTINCT standardizedSql) AS queries,
    {_count(_COUNTED)} AS totalHits,
    {_count(_HIT)} AS cacheHits,
    {_count(_MISS)} AS cacheMisses,
    {_bytes(_HIT)} AS cachedBytes,
    {_bytes("cacheStatus IS DISTINCT FROM 'HIT'")} AS passThroughBytes,
    {hit_mean} AS cacheHitAverageResponseTime,
    {miss_mean} AS cacheMissAverageResponseTime,
    count(DISTINCT userName) AS users
FROM range(24) AS hours(hour) LEFT JOIN entries ON entries.hour = hours.hour
GROUP BY hours.hour ORDER BY hours.hour"""


def _opportunities(*, executions: str, missed: str, time: str, condition: str, action: str) -> str:
    """Return the query of one list. ``action`` is SQL for the sentence, over its fields, hits and misses."""
    return f"""
SELECT
    * EXCLUDE (hits, misses),
    {action} AS suggestedAction
FROM (SELECT
    md5(standardizedSql) AS queryHash,
    standardizedSql AS statement,
    {_count(executions)} AS executionCount,
    {_count(missed)} AS cacheMisses,
    {time} AS totalWarehouseTimeMs,
    {_latest("matchedRule")} AS matchedRule,
    {_count(_HIT)} AS hits,
    {_count("cacheStatus = 'MISS'")} AS misses
FROM proxy_logs {_IN_PERIOD} AND standardizedSql IS NOT NULL
GROUP BY standardizedSql
HAVING {condition})
ORDER BY totalWarehouseTimeMs DESC, queryHash LIMIT {LIST_LENGTH}"""


_RULE: Final = "coalesce('rule ' || matchedRule, 'the rule that caches it')"
_SAVED: Final = f"{_mean('totalWarehouseTimeMs', 'cacheMisses')} || ' ms of warehouse time.'"
_WAREHOUSE: Final = "coalesce(sum(warehouseExecutionTimeMs), 0)"
_UNCACHED_WAREHOUSE: Final = f"coalesce(sum(warehouseExecutionTimeMs) FILTER ({_UNCACHED}), 0)"

_REPEAT_MISSES: Final = f"""'Raise the TTL of ' || {_RULE}
        || ', or invalidate it less often: it had ' || misses || ' misses and ' || hits
        || ' hits, and each further hit saves about '
        || {_SAVED}"""
_HIGH_COST: Final = f"""coalesce('Let rule ' || matchedRule || ' cache this statement',
            'Add a rule that caches this statement')
        || ': it ran ' || executionCount
        || ' times on the warehouse without caching. If only the first execution did, that would save up to '
        || (totalWarehouseTimeMs
            - {_mean("totalWarehouseTimeMs", "executionCount")})
        || ' ms.'"""
_LOW_HIT_RATE: Final = f"""'Widen the key or raise the TTL of ' || {_RULE}
        || ': only ' || hits || ' of ' || executionCount
        || ' executions were hits, and each further hit saves about '
        || {_SAVED}"""


@dataclass(frozen=True, slots=True)
class PublishedQuery:
    """One query.

    Attributes:
        name: ``<document>`` if its one row has fields of the document itself, or ``<document>.<field>`` if
            its rows are the elements of an array.
        about: what a reader must know besides the SQL.
        sql: the text, with ``$first`` and ``$last`` for the first and the last day.
        columns: the fields of the document, or of an element of the part, that it gives.
    """

    name: str
    about: str
    sql: str
    columns: tuple[str, ...]

    def over(self, first: date, last: date, *, user: str | None = None, exact: bool = False) -> str:
        """Return the statement for a period (both days included), of a tenant or of one of its users.

        With ``exact``, it reads the columns ``_hour`` and ``_row`` of a verification, which decide what
        ``proxy_logs`` cannot: the hour of an entry whose timestamp is outside of its day, and the latest of
        entries without a ``logId``.
        """
        sql = self.sql
        if exact:
            sql = sql.replace(_HOUR, _EXACT_HOUR).replace(_LATEST, _EXACT_LATEST)
        sql = sql.replace("$first", f"'{first}'").replace("$last", f"'{last}'")
        # Last, because a user's name may contain anything.
        return (
            sql if user is None else sql.replace("WHERE day", f"WHERE userName = {quote_value(user)} AND day")
        )

    def as_json(self) -> dict[str, Any]:
        """Return ``{name, text, parameters, fields}`` of the contract."""
        return {
            "name": self.name,
            "about": self.about,
            "text": self.sql,
            "parameters": [name for name in ("first", "last") if f"${name}" in self.sql],
            "fields": list(self.columns),
        }


_TIMES: Final = (
    *("averageResponseTime", "cacheHitAverageResponseTime", "cacheMissAverageResponseTime"),
    *("minResponseTime", "maxResponseTime"),
)
_HOUR_FIELDS: Final = (
    *("hour", "queries", "totalHits", "cacheHits", "cacheMisses", "cachedBytes", "passThroughBytes"),
    *("cacheHitAverageResponseTime", "cacheMissAverageResponseTime", "users"),
)
_OPPORTUNITY_FIELDS: Final = (
    *("queryHash", "statement", "executionCount", "cacheMisses", "totalWarehouseTimeMs", "matchedRule"),
    "suggestedAction",
)


def _queries() -> Iterator[PublishedQuery]:
    yield PublishedQuery(
        "day",
        "The totals of a day.",
        _totals(
            queries="",
            users="uniqueUsers",
            hits="cacheHits",
            misses="cacheMisses",
            total="totalHits",
            hit_bytes="cachedBytes",
            other_bytes="passThroughBytes",
        ),
        ("uniqueUsers", "cacheHits", "cacheMisses", "totalHits", "cachedBytes", "passThroughBytes", *_TIMES),
    )
    yield PublishedQuery(
        "day.queries",
        "One record per distinct statement. Entries without a statement count only in the totals. A time "
        "outside of the years 0001 to 9999 is null.",
        f"""
SELECT
    md5(standardizedSql) AS queryHash,
    standardizedSql AS statement,
    {_latest("cacheKey")} AS cacheKey,
    {_latest("matchedRule")} AS matchedRule,
    {_latest("cacheStatus")} AS cacheStatus,
    {_count(_HIT)} AS cacheHits,
    {_count(_MISS)} AS cacheMisses,
    {_latest("statusCode")} AS responseCode,
    coalesce({_mean_time()}, 0) AS averageResponseTime,
    {_latest("responseSize")} AS responseSize,
    count(*) AS count,
    sum(warehouseExecutionTimeMs) AS warehouseExecutionTimeMs,
    {_iso("min(timestamp)")} AS firstRequestTime,
    {_iso("max(timestamp)")} AS lastRequestTime
FROM proxy_logs {_IN_PERIOD} AND standardizedSql IS NOT NULL
GROUP BY standardizedSql
ORDER BY count DESC, queryHash""",
        (
            *("queryHash", "statement", "cacheKey", "matchedRule", "cacheStatus", "cacheHits", "cacheMisses"),
            *("responseCode", "averageResponseTime", "responseSize", "count", "warehouseExecutionTimeMs"),
            *("firstRequestTime", "lastRequestTime"),
        ),
    )
    yield PublishedQuery(
        "day.hourlyActivity",
        "24 entries by hour (UTC). In an hour without log entries all numbers are 0.",
        _hours(hit_mean=f"coalesce({_MEAN_HIT_TIME}, 0)", miss_mean=f"coalesce({_MEAN_MISS_TIME}, 0)"),
        _HOUR_FIELDS,
    )
    yield PublishedQuery(
        "month",
        "The totals of a month. Users and statements are distinct over the whole month.",
        _totals(
            queries="totalQueries",
            users="totalUsers",
            hits="totalCacheHits",
            misses="totalCacheMisses",
            total="totalHits",
            hit_bytes="totalCachedBytes",
            other_bytes="totalPassThroughBytes",
        ),
        (
            *("totalQueries", "totalUsers", "totalCacheHits", "totalCacheMisses", "totalHits"),
            *("totalCachedBytes", "totalPassThroughBytes", *_TIMES),
        ),
    )
    yield PublishedQuery(
        "month.hourlyActivity",
        "24 entries by hour of day (UTC) over all days. A mean without data is null, not 0.",
        _hours(hit_mean=_MEAN_HIT_TIME, miss_mean=_MEAN_MISS_TIME),
        _HOUR_FIELDS,
    )
    yield PublishedQuery(
        "year",
        "totalQueries counts statements that were stored in the cache or served from it. cacheElements "
        "counts each cacheKey with a MISS once per day; cacheSize adds the size of its last MISS of the day.",
        f"""
SELECT
    count(DISTINCT userName) AS totalUsers,
    count(DISTINCT standardizedSql) FILTER (
        {_HIT} OR ({_STORED})
    ) AS totalQueries,
    {_count(_HIT)} AS totalCacheHits,
    {_count(_COUNTED)} AS totalHits,
    (SELECT coalesce(sum(size), 0) FROM ({_STORED_SIZES}
    )) AS cacheSize,
    count(DISTINCT (day, cacheKey)) FILTER ({_STORED}) AS cacheElements
FROM proxy_logs {_IN_PERIOD}""",
        ("totalUsers", "totalQueries", "totalCacheHits", "totalHits", "cacheSize", "cacheElements"),
    )
    yield PublishedQuery(
        "year.last365daysQueryActivity",
        "The days with data among the 365 that end on the year's last day with data, the oldest first. "
        "$first is the second of January of the year before.",
        f"""
WITH stored AS (
    SELECT day, count(*) AS elements, sum(size) AS size
    FROM ({_STORED_SIZES}
    )
    GROUP BY day
)
SELECT
    replace(day, '-', '/') AS date,
    count(DISTINCT standardizedSql) AS queries,
    count(DISTINCT userName) AS users,
    {_count(_HIT)} AS cacheHits,
    {_count(_COUNTED)} AS totalHits,
    {_bytes(_HIT)} AS dataTransfer,
    coalesce(any_value(stored.size), 0) AS cacheSize,
    coalesce(any_value(stored.elements), 0) AS cacheElements
FROM proxy_logs LEFT JOIN stored USING (day) {_IN_PERIOD}
GROUP BY day
QUALIFY day::DATE > max(day::DATE) OVER () - {ACTIVITY_DAYS}
ORDER BY day""",
        (
            *("date", "queries", "users", "cacheHits", "totalHits", "dataTransfer", "cacheSize"),
            "cacheElements",
        ),
    )
    yield PublishedQuery(
        "rules",
        "Distinct statements of a year.",
        f"""
SELECT
    count(DISTINCT standardizedSql) AS totalQueries,
    count(DISTINCT standardizedSql) FILTER (cacheStatus = 'PASSTHROUGH') AS uncachedQueries,
    count(DISTINCT standardizedSql) FILTER (cacheStatus = 'BYPASS') AS bypassedQueries
FROM proxy_logs {_IN_PERIOD}""",
        ("totalQueries", "uncachedQueries", "bypassedQueries"),
    )
    yield PublishedQuery(
        "rules.rules",
        "hitRate has four decimals, rounded half up. warehouseTimeSavedMs is the number of hits times the "
        "mean warehouse time of the rule's own MISS entries; only the product is rounded, half up. It is "
        "negative if the times are. // rounds negative numbers towards 0, so the query uses %.",
        f"""
SELECT
    * EXCLUDE (saved, parts),
    coalesce((saved - (saved % parts + parts) % parts) // parts, 0) AS warehouseTimeSavedMs
FROM (SELECT
    matchedRule AS ruleId,
    {_latest("matchedRuleName")} AS ruleName,
    count(DISTINCT standardizedSql) AS queriesMatched,
    {_count(_COUNTED)} AS totalExecutions,
    {_count(_HIT)} AS cacheHits,
    {_count(_MISS)} AS cacheMisses,
    coalesce((20000 * {_count(_HIT)}
        + {_count(_COUNTED)})
        // (2 * nullif({_count(_COUNTED)}, 0)), 0)
        / 10000 AS hitRate,
    2 * {_count(_HIT)}
        * sum(warehouseExecutionTimeMs) FILTER (cacheStatus = 'MISS')
        + count(warehouseExecutionTimeMs) FILTER (cacheStatus = 'MISS') AS saved,
    2 * nullif(count(warehouseExecutionTimeMs) FILTER (cacheStatus = 'MISS'), 0) AS parts
FROM proxy_logs {_IN_PERIOD} AND matchedRule IS NOT NULL
GROUP BY matchedRule)
ORDER BY totalExecutions DESC, ruleId""",
        (
            *("ruleId", "ruleName", "queriesMatched", "totalExecutions", "cacheHits", "cacheMisses"),
            *("hitRate", "warehouseTimeSavedMs"),
        ),
    )
    yield PublishedQuery(
        "opportunities.repeatMisses",
        "Three or more MISS, and more MISS than hits.",
        _opportunities(
            executions=_COUNTED,
            missed=_MISS,
            time=_WAREHOUSE,
            condition="misses >= 3 AND misses > hits",
            action=_REPEAT_MISSES,
        ),
        _OPPORTUNITY_FIELDS,
    )
    yield PublishedQuery(
        "opportunities.highCostUncached",
        "Two or more PASSTHROUGH or BYPASS. Counts and times are of these entries only.",
        _opportunities(
            executions=_UNCACHED,
            missed=_UNCACHED,
            time=_UNCACHED_WAREHOUSE,
            condition="executionCount >= 2",
            action=_HIGH_COST,
        ),
        _OPPORTUNITY_FIELDS,
    )
    yield PublishedQuery(
        "opportunities.lowHitRate",
        "20 or more executions, at least one HIT or MISS, and less than 20 percent hits.",
        _opportunities(
            executions=_COUNTED,
            missed=_MISS,
            time=_WAREHOUSE,
            condition="executionCount >= 20 AND hits + misses >= 1 AND 5 * hits < executionCount",
            action=_LOW_HIT_RATE,
        ),
        _OPPORTUNITY_FIELDS,
    )
    yield PublishedQuery(
        "users",
        "The whole history: $first and $last are its first and its last day.",
        f"SELECT count(DISTINCT userName) AS totalUsers FROM proxy_logs {_IN_PERIOD}",
        ("totalUsers",),
    )
    yield PublishedQuery(
        "users.users",
        "One record per user of the whole history.",
        f"""
SELECT
    userName AS userId,
    count(DISTINCT standardizedSql) AS uniqueQueries,
    {_count(_HIT)} AS cacheHits,
    {_count(_COUNTED)} AS totalHits,
    coalesce({_mean_time()}, 0) AS averageResponseTime,
    coalesce(min(responseTimeMs) FILTER ({_TIMED}), 0) AS minResponseTime,
    coalesce(max(responseTimeMs) FILTER ({_TIMED}), 0) AS maxResponseTime
FROM proxy_logs {_IN_PERIOD} AND userName IS NOT NULL
GROUP BY userName ORDER BY totalHits DESC, userId""",
        (
            *("userId", "uniqueQueries", "cacheHits", "totalHits", "averageResponseTime"),
            *("minResponseTime", "maxResponseTime"),
        ),
    )


#: Every published query by name, in the order of the documentation.
QUERIES: Final[Mapping[str, PublishedQuery]] = {
    query.name: PublishedQuery(query.name, query.about, query.sql.strip(), query.columns)
    for query in _queries()
}
