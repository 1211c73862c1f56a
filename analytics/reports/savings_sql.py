"""The published query of savings: time awake and time busy per day, with and without the cache.

Contract: docs/savings.md. Executions on one host within `$bucket` milliseconds belong to one session, because
a session lasts at least that long after each start. The query groups them first, so that it then has few
rows, however many entries there are.
"""

# Queries consist of constants and numbers.
# ruff: noqa: S608

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from analytics.numbers.executions import ENTRIES, HAS_MEAN, IS_NEAR, Part
from logs.layout import DAY_MS, HOUR_MS, day_start_ms
from logs.quoting import quote_text

if TYPE_CHECKING:
    from accounts.tenants.pricing import Pricing, Terms


#: What is said to be "a month" is of so many days.
MONTH_DAYS: Final = 30
#: Seconds after which the warehouse could suspend. What it would bill is computed for each.
SUSPENDS: Final = (60, 120, 300, 600)
SAVINGS_FIELDS: Final = (
    "scope",
    "ruleId",
    "day",
    "hour",
    "awakeMs",
    "busyMs",
    "requests",
    "unmeasured",
    "host",
)
SAVINGS_ABOUT: Final = (
    "Milliseconds per day, and per hour of the day over all days of the window, in which `day` is null. "
    "Scope `withCache` has the executions, `without` also the requests that the cache spared, and "
    "`rule` the executions and what this rule spared; `busyMs` and `requests` of a rule are of its "
    "spared requests alone. Scope `suspend` has the executions if the warehouse suspended after the "
    "seconds in `ruleId`. `$before` is the day before `$first`. `$suspend` and `$minimum` are "
    "milliseconds of the price in force at the time `starts`: numbers, or CASE expressions if they "
    "change. `$priced` is `host` where it has a price of its own, otherwise null: a column of the result. "
    "`$bucket` is the shortest suspend, at least 1 and at most 60000."
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
sessions AS (
    SELECT scope, rule, $priced AS priced, starts, greatest(reach, starts + $minimum) AS until FROM joined
),
awake AS (
{split_by(DAY_MS, keys="scope, rule, priced", table="sessions")}
),
by_hour AS (
{split_by(HOUR_MS, keys="scope", table="sessions WHERE scope IN ('withCache', 'without')")}
),
numbers AS (
    SELECT
        scope, rule, priced, ('1970-01-01'::DATE + number::INTEGER)::VARCHAR AS day, NULL AS hour,
        awake, 0 AS busy, 0 AS requests, 0 AS unmeasured
    FROM awake
    UNION ALL SELECT scope, NULL, NULL, NULL, number % 24, awake, 0, 0, 0 FROM by_hour
    UNION ALL SELECT 'without', NULL, $priced, day, NULL, 0, busy, requests, unmeasured
        FROM buckets WHERE day >= $first
    UNION ALL SELECT 'withCache', NULL, $priced, day, NULL, 0, busy, requests, unmeasured
        FROM buckets WHERE day >= $first AND NOT spared
    UNION ALL SELECT 'rule', rule, $priced, day, NULL, 0, busy, requests, 0
        FROM buckets WHERE day >= $first AND spared AND requests > 0
)
SELECT
    scope, rule AS ruleId, day, hour::INTEGER AS hour,
    sum(awake)::BIGINT AS awakeMs, sum(busy)::BIGINT AS busyMs,
    sum(requests)::BIGINT AS requests, sum(unmeasured)::BIGINT AS unmeasured, priced AS host
FROM numbers GROUP BY ALL ORDER BY ALL"""
SAVINGS_SQL: Final = _FROM_LOG + _BILLED
#: The same rows from `$kept`.
KEPT_SAVINGS_SQL: Final = _FROM_KEPT + _BILLED


def fill_savings(
    text: str,
    *,
    first: date,
    before: date,
    last: date,
    pricing: Pricing,
    host_of: Callable[[str], str] = quote_text,
) -> str:
    """Return a query with the days of a window, and the times and hosts of the prices.

    Args:
        host_of: returns SQL for the value of ``host`` that stands for a host.
    """
    suspends = [terms.suspend_seconds * 1000 for own in pricing.each().values() for terms in own]

    def by_host(value_of: Callable[[Terms], int]) -> str:
        cases = {host_of(host): _by_time(own, value_of) for host, own in pricing.hosts.items()}
        return _when_host(cases, usual=_by_time(pricing.terms, value_of))

    values = {
        "bucket": str(max(1, min(*suspends, 1000 * SUSPENDS[0]))),
        "suspend": by_host(lambda terms: terms.suspend_seconds * 1000),
        "minimum": by_host(lambda terms: terms.minimum_seconds * 1000),
        "priced": _when_host(
            {host_of(host): quote_text(host) for host in pricing.hosts}, usual="NULL::VARCHAR"
        ),
        "before": f"'{before}'",
        "first": f"'{first}'",
        "last": f"'{last}'",
    }
    # At once: a host may be named like a parameter.
    return re.sub(rf"\$({'|'.join(values)})\b", lambda match: values[match[1]], text)


def _when_host(cases: Mapping[str, str], *, usual: str) -> str:
    whens = "".join(f" WHEN host = {host} THEN {value}" for host, value in cases.items())
    return f"CASE{whens} ELSE {usual} END" if whens else usual


def _by_time(own: Sequence[Terms], value_of: Callable[[Terms], int]) -> str:
    """Return the value in force at the time ``starts``: a number, or a CASE expression."""
    values = [value_of(terms) for terms in own]
    if len(set(values)) == 1:
        return str(values[0])
    changes = [
        f"WHEN starts >= {day_start_ms(terms.first)} THEN {value}"
        for terms, value in zip(reversed(own[1:]), reversed(values[1:]), strict=True)
    ]
    return f"CASE {' '.join(changes)} ELSE {values[0]} END"


#: Milliseconds by the host whose price it is (`$priced`), and day.
Times: TypeAlias = "Mapping[tuple[str | None, date], int]"


@dataclass(frozen=True, slots=True)
class Bill:
    """By day: the milliseconds that are billed, how long statements ran, and what it costs.

    ``cost`` is for `Pricing.money`. It lacks days without a price.
    """

    billed: Mapping[date, int]
    busy: Mapping[date, int]
    cost: Mapping[date, int]

    def __sub__(self, other: Bill) -> Bill:
        return Bill(
            *(
                {day: value - of_other[day] for day, value in own.items()}
                for own, of_other in (
                    (self.billed, other.billed),
                    (self.busy, other.busy),
                    (self.cost, other.cost),
                )
            )
        )

    @property
    def ms(self) -> int:
        """The time that all days bill."""
        return sum(self.billed.values())

    def amount(self, days: Iterable[date]) -> int | None:
        """Return what the days cost, for `Pricing.money`; None if none of them has a price."""
        costs = [self.cost[day] for day in days if day in self.cost]
        return sum(costs) if costs else None


def bill_days(days: Iterable[date], pricing: Pricing, *, awake: Times, busy: Times) -> Bill:
    """Return what each day bills: the time awake, the time busy, or the whole day, of each host's price."""
    billed: dict[date, int] = {}
    ran: dict[date, int] = {}
    cost: dict[date, int] = {}
    for day in days:
        billed[day] = ran[day] = 0
        for host in pricing.each():
            terms, key = pricing.on(day, host), (host, day)
            match terms.billing:
                case "suspending":
                    ms = awake.get(key, 0)
                case "busy":
                    ms = busy.get(key, 0)
                case "always-on":
                    ms = DAY_MS
            billed[day] += ms
            ran[day] += busy.get(key, 0)
            if terms.per_hour is not None:
                cost[day] = cost.get(day, 0) + ms * terms.per_hour
    return Bill(billed, ran, cost)


def days_between(first: date, last: date) -> Sequence[date]:
    """Return the days of a window, both included."""
    return [first + timedelta(number) for number in range((last - first).days + 1)]
