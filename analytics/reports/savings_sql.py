"""The published query of savings: time awake and time busy per day, with and without the cache.

Contract: docs/savings.md. Executions on one host within `$bucket` milliseconds belong to one session, because
a session lasts at least that long after each start. The query groups them first, so that it then has few
rows, however many entries there are.
"""

# Queries consist of constants and numbers.
# ruff: noqa: S608

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from analytics.numbers.executions import ENTRIES, HAS_MEAN, IS_NEAR, Part
from logs.layout import DAY_MS, HOUR_MS, day_start_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from accounts.tenants.pricing import Pricing


#: Seconds after which the warehouse could suspend. What it would bill is computed for each.
SUSPENDS: Final = (60, 120, 300, 600)
SAVINGS_FIELDS: Final = ("scope", "ruleId", "day", "hour", "awakeMs", "busyMs", "requests", "unmeasured")
SAVINGS_ABOUT: Final = (
    "Milliseconds per day, and per hour of the day over all days of the window, in which `day` is null. "
    "Scope `withCache` has the executions, `without` also the requests that the cache spared, and "
    "`rule` the executions and what this rule spared; `busyMs` and `requests` of a rule are of its "
    "spared requests alone. Scope `suspend` has the executions if the warehouse suspended after the "
    "seconds in `ruleId`. `$before` is the day before `$first`. `$suspend` and `$minimum` are "
    "milliseconds of the price in force at the time `starts`: numbers, or CASE expressions if they "
    "change. `$bucket` is the shortest suspend, at least 1 and at most 60000."
)


def join_overlaps(*, keys: str, table: str) -> str:
    """Return SQL that joins the intervals (``starts`` to ``reach``) that overlap or touch."""
    return f"""\
    SELECT
        {keys}, starts,
        coalesce(lead(earlier) OVER (PARTITION BY {keys} ORDER BY starts), latest) AS reach
    FROM (
        SELECT
            {keys}, starts,
            max(reach) OVER (
                PARTITION BY {keys} ORDER BY starts, reach ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS earlier,
            max(reach) OVER (PARTITION BY {keys}) AS latest
        FROM {table} WHERE reach IS NOT NULL
        QUALIFY earlier IS NULL OR starts > earlier
    )"""


def split_by(unit_ms: int, *, keys: str, table: str) -> str:
    """Return SQL with the milliseconds between ``starts`` and ``until`` in each day or hour of the window.

    ``number`` is the day or hour, counted from 1970-01-01.
    """
    return f"""\
    SELECT
        {keys}, number,
        least(until, {unit_ms} * (number + 1)) - greatest(starts, {unit_ms} * number) AS awake
    FROM (
        SELECT
            {keys}, starts, until,
            unnest(range(
                greatest(starts, epoch_ms($first::TIMESTAMP)) // {unit_ms},
                least(until - 1, epoch_ms($last::TIMESTAMP) + {DAY_MS - 1}) // {unit_ms} + 1
            )) AS number
        FROM {table}
    )"""


#: Sessions under a longer suspend consist of sessions under the shortest one.
_EXECUTED: Final = (
    f"(SELECT host, starts, ends + {1000 * SUSPENDS[0]} AS reach FROM buckets WHERE NOT spared)"
)
#: From the executions of the log, joined within `$bucket` milliseconds.
_FROM_LOG: Final = f"""
WITH entries AS NOT MATERIALIZED (
{ENTRIES}
),
means AS (
    SELECT statement, sum(ms) // count(*) AS mean
    FROM entries WHERE {HAS_MEAN} GROUP BY statement
),
timed AS (
    SELECT
        entries.*,
        CASE WHEN {IS_NEAR}
            THEN coalesce(ms, CASE WHEN NOT failed THEN mean END) END AS took
    FROM entries LEFT JOIN means USING (statement) WHERE started IS NOT NULL
),
buckets AS MATERIALIZED (
    SELECT
        spared, rule, host, day, min(starts) FILTER (took IS NOT NULL) AS starts,
        max(starts + took) AS ends, max(starts + took + $suspend) AS reach,
        coalesce(sum(took), 0) AS busy, count(took) AS requests, count(*) - count(took) AS unmeasured
    FROM (SELECT spared, rule, host, day, started AS starts, took::BIGINT AS took FROM timed)
    GROUP BY spared, rule, host, day, starts // $bucket
),
"""
#: The same from what is kept of each day (`analytics.numbers.executions`), whose files are `$kept`.
_FROM_KEPT: Final = f"""
WITH means AS (
    SELECT statement, (sum(busy) // sum(requests))::BIGINT AS mean
    FROM read_parquet($kept) WHERE part = '{Part.MEAN}' GROUP BY statement
),
timed AS (
    SELECT spared, rule, host, day, starts, ends, busy, requests, unmeasured
    FROM read_parquet($kept) WHERE part IN ('{Part.RAN}', '{Part.TOTAL}')
    UNION ALL SELECT
        spared, rule, host, day, starts, starts + mean, coalesce(mean, 0), if(mean IS NULL, 0, 1),
        if(mean IS NULL, 1, 0)
    FROM read_parquet($kept) LEFT JOIN means USING (statement) WHERE part = '{Part.WAITS}'
),
buckets AS MATERIALIZED (
    SELECT
        spared, rule, host, day, min(starts) FILTER (ends IS NOT NULL) AS starts, max(ends) AS ends,
        max(ends + $suspend) AS reach, sum(busy) AS busy, sum(requests) AS requests,
        sum(unmeasured) AS unmeasured
    FROM timed GROUP BY spared, rule, host, day, starts // $bucket
),
"""
_BILLED: Final = f"""\
parts AS MATERIALIZED (
{join_overlaps(keys="spared, rule, host", table="buckets")}
),
shortest AS MATERIALIZED (
{join_overlaps(keys="host", table=_EXECUTED)}
),
rules AS (SELECT DISTINCT rule FROM parts WHERE spared),
scopes AS (
    SELECT 'withCache' AS scope, NULL AS rule, host, starts, reach FROM parts WHERE NOT spared
    UNION ALL SELECT 'without', NULL, host, starts, reach FROM parts
    UNION ALL SELECT 'rule', rule, host, starts, reach FROM parts WHERE spared
    UNION ALL SELECT 'rule', rules.rule, host, starts, reach FROM parts, rules WHERE NOT spared
    UNION ALL SELECT 'suspend', seconds, host, starts, reach + 1000 * (seconds::INTEGER - {SUSPENDS[0]})
        FROM shortest, (SELECT unnest({list(map(str, SUSPENDS))}) AS seconds)
),
joined AS (
{join_overlaps(keys="scope, rule, host", table="scopes")}
),
sessions AS (SELECT scope, rule, starts, greatest(reach, starts + $minimum) AS until FROM joined),
awake AS (
{split_by(DAY_MS, keys="scope, rule", table="sessions")}
),
by_hour AS (
{split_by(HOUR_MS, keys="scope", table="sessions WHERE scope IN ('withCache', 'without')")}
),
numbers AS (
    SELECT
        scope, rule, ('1970-01-01'::DATE + number::INTEGER)::VARCHAR AS day, NULL AS hour,
        awake, 0 AS busy, 0 AS requests, 0 AS unmeasured
    FROM awake
    UNION ALL SELECT scope, NULL, NULL, number % 24, awake, 0, 0, 0 FROM by_hour
    UNION ALL SELECT 'without', NULL, day, NULL, 0, busy, requests, unmeasured
        FROM buckets WHERE day >= $first
    UNION ALL SELECT 'withCache', NULL, day, NULL, 0, busy, requests, unmeasured
        FROM buckets WHERE day >= $first AND NOT spared
    UNION ALL SELECT 'rule', rule, day, NULL, 0, busy, requests, 0
        FROM buckets WHERE day >= $first AND spared AND requests > 0
)
SELECT
    scope, rule AS ruleId, day, hour::INTEGER AS hour,
    sum(awake)::BIGINT AS awakeMs, sum(busy)::BIGINT AS busyMs,
    sum(requests)::BIGINT AS requests, sum(unmeasured)::BIGINT AS unmeasured
FROM numbers GROUP BY ALL ORDER BY ALL"""
SAVINGS_SQL: Final = _FROM_LOG + _BILLED
#: The same rows from `$kept`.
KEPT_SAVINGS_SQL: Final = _FROM_KEPT + _BILLED


def fill_savings(text: str, *, first: date, before: date, last: date, pricing: Pricing) -> str:
    """Return a query with the days of a window and the times of the prices."""
    terms = pricing.terms
    suspend = [item.suspend_seconds * 1000 for item in terms]
    values = {
        "bucket": str(max(1, min(*suspend, 1000 * SUSPENDS[0]))),
        "suspend": _by_time(pricing, suspend),
        "minimum": _by_time(pricing, [item.minimum_seconds * 1000 for item in terms]),
        "before": f"'{before}'",
        "first": f"'{first}'",
        "last": f"'{last}'",
    }
    for name, value in values.items():
        text = text.replace(f"${name}", value)
    return text


def _by_time(pricing: Pricing, values: Sequence[int]) -> str:
    """Return the value in force at the time ``starts``: a number, or a CASE expression."""
    if len(set(values)) == 1:
        return str(values[0])
    changes = [
        f"WHEN starts >= {day_start_ms(terms.first)} THEN {value}"
        for terms, value in zip(reversed(pricing.terms[1:]), reversed(values[1:]), strict=True)
    ]
    return f"CASE {' '.join(changes)} ELSE {values[0]} END"


@dataclass(frozen=True, slots=True)
class Bill:
    """Milliseconds by day: what is billed, and how long statements ran."""

    billed: Mapping[date, int]
    busy: Mapping[date, int]

    def __sub__(self, other: Bill) -> Bill:
        return Bill(
            {day: ms - other.billed[day] for day, ms in self.billed.items()},
            {day: ms - other.busy[day] for day, ms in self.busy.items()},
        )

    @property
    def ms(self) -> int:
        """The time that all days bill."""
        return sum(self.billed.values())

    def amount(self, days: Iterable[date], pricing: Pricing) -> int | None:
        """Return what the days cost, for `Pricing.money`; None if none of them has a price."""
        amounts = [
            self.billed[day] * per_hour for day in days if (per_hour := pricing.on(day).per_hour) is not None
        ]
        return sum(amounts) if amounts else None


def bill_days(
    days: Iterable[date], pricing: Pricing, *, awake: Mapping[date, int], busy: Mapping[date, int]
) -> Bill:
    """Return what each day bills: the time awake, the time busy, or the whole day."""
    billed = {}
    for day in days:
        match pricing.on(day).billing:
            case "suspending":
                billed[day] = awake.get(day, 0)
            case "busy":
                billed[day] = busy.get(day, 0)
            case "always-on":
                billed[day] = DAY_MS
    return Bill(billed, {day: busy.get(day, 0) for day in billed})


def days_between(first: date, last: date) -> Sequence[date]:
    """Return the days of a window, both included."""
    return [first + timedelta(number) for number in range((last - first).days + 1)]
