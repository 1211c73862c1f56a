"""Estimate the cost of publishing: every write of a ruleset empties the cache.

A write at the start of an hour costs one execution for each cache entry that would have served a later hit.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from logs.layout import DAY_MS, HOUR_MS, day_start_ms
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from datetime import date

    from duckdb import DuckDBPyConnection

_HOURS: Final = DAY_MS // HOUR_MS


class HourCost(JsonStruct):
    hour: Annotated[int, Meta(ge=0, le=23)]
    extra_misses: Count
    extra_ms: Count


class PublishCost(JsonStruct):
    """What leaving the cache behind costs, by hour of the day (UTC)."""

    by_hour: list[HourCost]
    best: HourCost
    now: HourCost


def estimate_publish_cost(
    connection: DuckDBPyConnection, table: str, *, first_day: date, last_day: date, left_out: int, hour: int
) -> PublishCost:
    """Return the mean extra misses and their milliseconds by hour of the day (UTC).

    Args:
        table: the table of outcomes.
        left_out: how many of the days have no requests in it.
        hour: the hour that the result has as ``now``. ``best`` has the least extra time, then misses.
    """
    start = day_start_ms(first_day) // HOUR_MS
    count = (last_day - first_day).days * _HOURS + _HOURS
    misses, milliseconds = [0] * (count + 1), [0] * (count + 1)
    # For each entry, the hours that start after its execution began and not after its last hit.
    for first, last, entries, mean_ms in connection.execute(
        f"""
        SELECT first, last, count(*), sum(mean_ms)::BIGINT FROM (
            SELECT greatest(any_value(started) // {HOUR_MS} + 1 - {start}, 0) AS first,
                least(max(requested_at) // {HOUR_MS} - {start}, {count - 1}) AS last,
                arg_max(mean_ms, requested_at) AS mean_ms
            FROM {table} WHERE entry IS NOT NULL GROUP BY entry
        )
        WHERE first <= last GROUP BY first, last
        """  # noqa: S608
    ).fetchall():
        misses[first] += entries
        misses[last + 1] -= entries
        milliseconds[first] += mean_ms
        milliseconds[last + 1] -= mean_ms
    days = max(count // _HOURS - left_out, 1)
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for index, (extra, extra_ms) in enumerate(
        zip(accumulate(misses[:-1]), accumulate(milliseconds[:-1]), strict=True)
    ):
        sums[index % _HOURS][0] += extra
        sums[index % _HOURS][1] += extra_ms
    by_hour = [
        HourCost(
            hour=number,
            extra_misses=round_half_up(sums[number][0], days),
            extra_ms=round_half_up(sums[number][1], days),
        )
        for number in range(_HOURS)
    ]
    best = min(by_hour, key=lambda row: (row.extra_ms, row.extra_misses, row.hour))
    return PublishCost(by_hour=by_hour, best=best, now=by_hour[hour])


def round_half_up(numerator: int, denominator: int) -> int:
    """Return a quotient rounded to the nearest integer."""
    return (2 * numerator + denominator) // (2 * denominator)
