"""Parts of the published queries: conditions, sums, and queries that differ in a few names."""

# Queries consist of constants and quoted texts.
# ruff: noqa: S608

from __future__ import annotations

from typing import Final

from analytics.summaries.documents.opportunities import LIST_LENGTH
from analytics.summaries.numbers import FIRST_MS, LAST_MS
from logs.definitions import (
    HIT,
    HOUR,
    MISS,
    NOT_CACHED,
    REQUEST,
    SIZED,
    STORED,
    STORED_MISS,
    TIMED,
    WAREHOUSE_TIME,
    hash_sql,
)

IN_PERIOD: Final = "WHERE day BETWEEN $first AND $last"

#: The order that decides which of several entries is the latest.
LATEST: Final = "(coalesce(timestamp, 0), coalesce(logId, ''))"
#: The hour of an entry and this order, but exact: from two columns that only a verification reads.
EXACT_HOUR: Final = "_hour"
EXACT_LATEST: Final = "(coalesce(timestamp, 0), coalesce(logId, ''), DATE '1970-01-01' - day::DATE, _row)"


def count(condition: object) -> str:
    """Return SQL for the number of entries that fulfil a condition."""
    return f"count(*) FILTER ({condition})"


def sum_bytes(condition: object) -> str:
    """Return SQL for the sum of response sizes of entries that fulfil a condition."""
    return f"coalesce(sum({SIZED.column}) FILTER ({condition} AND {SIZED}), 0)"


def mean_time(condition: object = TIMED) -> str:
    """Return SQL for the mean response time, rounded half up; null without data."""
    times = count(condition)
    total = f"sum({TIMED.column}) FILTER ({condition})"
    return f"(2 * {total}\n        + {times})\n        // (2 * nullif({times}, 0))"


def _mean(total: str, count: str) -> str:
    """Return SQL for ``total / count``, rounded half up. ``//`` would round negative numbers towards 0."""
    dividend, divisor = f"(2 * {total} + {count})", f"(2 * {count})"
    return f"(({dividend} - ({dividend} % {divisor} + {divisor}) % {divisor}) // {divisor})"


def latest(column: str) -> str:
    """Return SQL for the value of the latest entry, which may be null."""
    return f"arg_max_null({column}, {LATEST})"


def iso(aggregate: str) -> str:
    """Return SQL for a time (epoch ms) as ISO 8601; null outside of the years 1 to 9999."""
    return (
        f"strftime(make_timestamp_ms(CASE WHEN {aggregate} BETWEEN {FIRST_MS} AND {LAST_MS}\n"
        f"        THEN {aggregate} END), '%Y-%m-%dT%H:%M:%S.%gZ')"
    )


MEAN_HIT_TIME: Final = mean_time(f"{TIMED} AND {HIT}")
MEAN_MISS_TIME: Final = mean_time(f"{TIMED} AND {MISS}")

#: The sizes of stored results: the last MISS of each cache key and day.
STORED_SIZES: Final = f"""
        SELECT day, greatest(arg_max({SIZED.column}, {LATEST}), 0) AS size
        FROM proxy_logs
        {IN_PERIOD} AND {STORED}
        GROUP BY day, cacheKey"""


def totals(
    *, queries: str, users: str, hits: str, misses: str, total: str, hit_bytes: str, other_bytes: str
) -> str:
    """Return the query for the totals of a day or a month. They differ in the names of fields."""
    columns = [
        *([f"count(DISTINCT standardizedSql) AS {queries}"] if queries else []),
        f"count(DISTINCT userName) AS {users}",
        f"{count(HIT)} AS {hits}",
        f"{count(MISS)} AS {misses}",
        f"{count(REQUEST)} AS {total}",
        f"{sum_bytes(HIT)} AS {hit_bytes}",
        f"{sum_bytes(HIT.others)} AS {other_bytes}",
        f"coalesce({mean_time()}, 0) AS averageResponseTime",
        f"coalesce({MEAN_HIT_TIME}, 0) AS cacheHitAverageResponseTime",
        f"coalesce({MEAN_MISS_TIME}, 0) AS cacheMissAverageResponseTime",
        f"coalesce(min({TIMED.column}) FILTER ({TIMED}), 0) AS minResponseTime",
        f"coalesce(max({TIMED.column}) FILTER ({TIMED}), 0) AS maxResponseTime",
    ]
    return "SELECT\n    " + ",\n    ".join(columns) + f"\nFROM proxy_logs {IN_PERIOD}"


def hours(*, hit_mean: str, miss_mean: str) -> str:
    """Return the query for the 24 hours of the day."""
    return f"""
WITH entries AS (
    SELECT *, {HOUR} AS hour
    FROM proxy_logs {IN_PERIOD}
)
SELECT
    hours.hour,
    count(DISTINCT standardizedSql) AS queries,
    {count(REQUEST)} AS totalHits,
    {count(HIT)} AS cacheHits,
    {count(MISS)} AS cacheMisses,
    {sum_bytes(HIT)} AS cachedBytes,
    {sum_bytes(HIT.others)} AS passThroughBytes,
    {hit_mean} AS cacheHitAverageResponseTime,
    {miss_mean} AS cacheMissAverageResponseTime,
    count(DISTINCT userName) AS users
FROM range(24) AS hours(hour) LEFT JOIN entries ON entries.hour = hours.hour
GROUP BY hours.hour ORDER BY hours.hour"""


def opportunities(*, executions: object, missed: object, time: str, condition: str, action: str) -> str:
    """Return the query for one list. ``action`` is SQL for the sentence, over its fields, hits and misses."""
    return f"""
SELECT
    * EXCLUDE (hits, misses, ruleName),
    {action} AS suggestedAction
FROM (SELECT
    {hash_sql()} AS queryHash,
    standardizedSql AS statement,
    {count(executions)} AS executionCount,
    {count(missed)} AS cacheMisses,
    {time} AS totalWarehouseTimeMs,
    {latest("matchedRule")} AS matchedRule,
    {latest("matchedRuleName")} AS ruleName,
    {count(HIT)} AS hits,
    {count(STORED_MISS)} AS misses
FROM proxy_logs {IN_PERIOD} AND standardizedSql IS NOT NULL
GROUP BY standardizedSql
HAVING {condition})
ORDER BY totalWarehouseTimeMs DESC, queryHash LIMIT {LIST_LENGTH}"""


_NAME: Final = "if(matchedRule IS NULL, NULL, coalesce('“' || ruleName || '”', matchedRule))"
_RULE: Final = f"coalesce('rule ' || {_NAME}, 'the rule that caches it')"
_SAVED: Final = f"{_mean('totalWarehouseTimeMs', 'cacheMisses')} || ' ms of warehouse time.'"
WAREHOUSE: Final = f"coalesce({WAREHOUSE_TIME}, 0)"
NOT_CACHED_WAREHOUSE: Final = f"coalesce({WAREHOUSE_TIME} FILTER ({NOT_CACHED}), 0)"

REPEAT_MISSES: Final = f"""'Raise the TTL of ' || {_RULE}
        || ', or invalidate it less often: it had ' || misses || ' misses and ' || hits
        || ' hits, and each further hit saves about '
        || {_SAVED}"""
HIGH_COST: Final = f"""coalesce('Let rule ' || {_NAME} || ' cache this statement',
            'Add a rule that caches this statement')
        || ': it ran ' || executionCount
        || ' times on the warehouse without caching. If only the first execution did, that would save up to '
        || (totalWarehouseTimeMs
            - {_mean("totalWarehouseTimeMs", "executionCount")})
        || ' ms.'"""
LOW_HIT_RATE: Final = f"""'Widen the key or raise the TTL of ' || {_RULE}
        || ': only ' || hits || ' of ' || executionCount
        || ' executions were hits, and each further hit saves about '
        || {_SAVED}"""
