"""The published queries, the parts they are made of, and the documents that their rows make."""

# Queries consist of constants and quoted texts.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import zip_longest
from typing import Annotated, Any, Final

from msgspec import Meta

from analytics.numbers.documents import (
    DailySummary,
    HourActivity,
    MonthHourActivity,
    MonthlySummary,
    QueryRecord,
)
from analytics.numbers.tables import FIRST_MS, LAST_MS
from analytics.numbers.yearly import (
    ACTIVITY_DAYS,
    LIST_LENGTH,
    DayActivity,
    Opportunity,
    RuleRecord,
    UserRecord,
)
from analytics.reports.savings_sql import SAVINGS_ABOUT, SAVINGS_FIELDS, SAVINGS_SQL
from logs.definitions import (
    BYPASSED,
    HIT,
    HOUR,
    MISS,
    NOT_CACHED,
    PASSED,
    REQUEST,
    SIZED,
    STORED,
    STORED_MISS,
    TIMED,
    WAREHOUSE_TIME,
    hash_sql,
)
from logs.quoting import quote_value
from rules.json_text import Path, join_pointer
from tenantadmin.lib.core.structs import JsonStruct

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


def _fields(struct: type[JsonStruct], *others: str) -> list[str]:
    """Return the fields of a document or a row, without ``others``, which its query does not give."""
    return [name for name in struct.__struct_encode_fields__ if name not in others]


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
        _fields(DailySummary, "queries", "hourlyActivity"),
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
        _fields(QueryRecord),
    )
    yield _query(
        "day.hourlyActivity",
        "24 entries by hour (UTC). In an hour without log entries all numbers are 0.",
        hours(hit_mean=f"coalesce({MEAN_HIT_TIME}, 0)", miss_mean=f"coalesce({MEAN_MISS_TIME}, 0)"),
        _fields(HourActivity),
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
        _fields(MonthlySummary, "month", "hourlyActivity"),
    )
    yield _query(
        "month.hourlyActivity",
        "24 entries by hour of day (UTC) over all days. A mean without data is null, not 0.",
        hours(hit_mean=MEAN_HIT_TIME, miss_mean=MEAN_MISS_TIME),
        _fields(MonthHourActivity),
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
        _fields(DayActivity),
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
        _fields(RuleRecord),
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
        _fields(Opportunity),
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
        _fields(Opportunity),
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
        _fields(Opportunity),
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
        _fields(UserRecord),
    )

    yield _query("savings", SAVINGS_ABOUT, SAVINGS_SQL, SAVINGS_FIELDS)


#: Every published query by name, in the order of the documentation.
QUERIES: Final[Mapping[str, PublishedQuery]] = {query.name: query for query in _queries()}

#: The most differences that are listed. All are counted.
MAX_DIFFERENCES: Final = 1_000


class UnequalValue(JsonStruct):
    """A value of the document that is not what the query gives. Null can also mean absent."""

    path: Annotated[str, Meta(description="JSON Pointer into the document.")]
    document: Any
    query: Any


@dataclass(slots=True)
class Comparison:
    """The number of compared values, the number of different values, and the first differences."""

    fields: int = 0
    unequal_count: int = 0
    unequal: list[UnequalValue] = field(default_factory=list)


def queries_of(document: str) -> list[PublishedQuery]:
    """Return the queries that together give a kind of document, such as ``day``, ``month`` or ``rules``."""
    return [query for name, query in QUERIES.items() if name.partition(".")[0] == document]


def assemble(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], *, constants: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a document.

    Args:
        rows: the rows of each query of the document, by name.
        constants: the fields that no query gives: the identity of the document, and its time.
    """
    document: dict[str, Any] = dict(constants)
    for name, query_rows in rows.items():
        _, _, array = name.partition(".")
        if array:
            document[array] = list(query_rows)
        else:
            (row,) = query_rows
            document.update(row)
    return document


def compare(document: object, expected: object) -> Comparison:
    """Compare all values, field names and array lengths of a document with the result of the SQL."""
    comparison = Comparison()
    _compare(document, expected, (), comparison)
    return comparison


def _compare(document: object, expected: object, path: Path, comparison: Comparison) -> None:
    parts: Iterable[tuple[str | int, object, object]]
    if isinstance(document, dict) and isinstance(expected, dict):
        names = dict.fromkeys((*expected, *document))
        parts = ((name, document.get(name), expected.get(name)) for name in names)
        # An absent field is not the same as null.
        is_same_shape = document.keys() == expected.keys()
    elif isinstance(document, list) and isinstance(expected, list):
        pairs = zip_longest(document, expected)
        parts = ((index, value, expected_value) for index, (value, expected_value) in enumerate(pairs))
        is_same_shape = len(document) == len(expected)
    else:
        comparison.fields += 1
        if type(document) is not type(expected) or document != expected:
            _note(document, expected, path, comparison)
        return
    before = comparison.unequal_count
    for name, value, expected_value in parts:
        _compare(value, expected_value, (*path, name), comparison)
    if not is_same_shape and comparison.unequal_count == before:
        _note(document, expected, path, comparison)


def _note(document: object, expected: object, path: Path, comparison: Comparison) -> None:
    comparison.unequal_count += 1
    if len(comparison.unequal) < MAX_DIFFERENCES:
        comparison.unequal.append(UnequalValue(path=join_pointer(path), document=document, query=expected))
