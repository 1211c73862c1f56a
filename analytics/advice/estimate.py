"""Estimate the hits and executions of one result under a lifetime.

It follows "Cache" and "Risk" of docs/replay.md, but only counts, for one key at a time. Estimates choose the
proposals; a replay computes the numbers that a proposal promises.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.replay.chain import NEVER, Lifetime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.advice.requests import Series


class Estimate(NamedTuple):
    """Counts of requests. ``executions`` run in the warehouse, and include revalidations."""

    hits: int = 0
    risk_low: int = 0
    risk_high: int = 0
    executions: int = 0

    def plus(self, other: Estimate) -> Estimate:
        return Estimate(*(mine + others for mine, others in zip(self, other, strict=True)))


#: No request.
NOTHING: Final = Estimate()


def estimate(series: Series, lifetime: Lifetime, *, changes: Sequence[int], counted_from: int) -> Estimate:
    """Play one series of requests for the same result.

    Args:
        changes: the sorted times of changes of the tables that the requests read.
        counted_from: requests before this time (epoch ms) only fill the cache.
    """
    times, works, failing, markers = series.times, series.works, series.failing, lifetime.markers
    ttl_ms, stale_ms = lifetime.ttl_ms, lifetime.stale_ms
    end = len(times)
    first = bisect_left(times, counted_from) if end and times[0] < counted_from else 0
    hits = risk_low = risk_high = executions = 0
    started = born = stale_until = -1
    index = 0
    while True:
        while index < end and failing[index]:
            hits += times[index] < stale_until and index >= first
            index += 1
        if index == end:
            return Estimate(hits, risk_low, risk_high, executions)
        at = times[index]
        ready = at + works[index]
        marked = bisect_right(markers, ready)
        invalid_from = markers[marked] if marked < len(markers) else NEVER
        following = bisect_left(times, min(ready + ttl_ms, invalid_from), index + 1, end)
        fresh = bisect_left(times, ready, index + 1, following)
        executions += index >= first
        if at < stale_until:
            # The older result serves this request, and the requests before the new result is there.
            last = bisect_left(times, min(ready, stale_until), index + 1, fresh)
            begin = max(index, first)
            hits += max(last - begin, 0)
            risk_low += _count_after(changes, born, times, begin, last)
            risk_high += _count_after(changes, started, times, begin, last)
        begin = max(fresh, first)
        if begin < following:
            hits += following - begin
            risk_low += _count_after(changes, ready, times, begin, following)
            risk_high += _count_after(changes, at, times, begin, following)
        started, born = at, ready
        stale_until = min(ready + ttl_ms + stale_ms, invalid_from) if stale_ms else -1
        index = following


def _count_after(changes: Sequence[int], moment: int, times: Sequence[int], begin: int, end: int) -> int:
    """Count the requests that come at or after the first change after ``moment``."""
    change = bisect_right(changes, moment)
    if change == len(changes) or begin >= end:
        return 0
    return end - bisect_left(times, changes[change], begin, end)
