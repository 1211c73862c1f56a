"""Estimate the saving of a cache rule under a lifetime and markers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.advice.estimate import NOTHING, Estimate, estimate
from analytics.advice.proposal import is_within_cap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.advice.proposal import Current
    from analytics.advice.requests import Series
    from analytics.replay.chain import Lifetime


@dataclass(frozen=True, slots=True)
class Saving:
    """A sum of estimates.

    Attributes:
        low, high: bounds: all hidden literals differ, or all are equal.
        ms: the mean of the lower and the upper bound of the time saved.
    """

    low: Estimate = NOTHING
    high: Estimate = NOTHING
    ms: int = 0

    @property
    def is_safe(self) -> bool:
        """True if the share of hits at risk of being stale is at most `RISK_CAP`."""
        return all(is_within_cap(total.risk_high, total.hits) for total in (self.low, self.high))

    def plus(self, other: Saving) -> Saving:
        return Saving(self.low.plus(other.low), self.high.plus(other.high), self.ms + other.ms)


def find_saving(current: Current, all_series: Iterable[Series], lifetime: Lifetime) -> Saving:
    """Estimate the time saved if the results of these requests have this lifetime."""
    requests = current.requests
    low = high = NOTHING
    twice = 0
    for series in all_series:
        result = estimate(
            series,
            lifetime,
            changes=requests.changes_of(series.statement),
            counted_from=requests.counted_from,
        )
        high = high.plus(result)
        twice += series.statement.mean_ms * result.hits
        if not series.is_hidden:
            low = low.plus(result)
            twice += series.statement.mean_ms * result.hits
    return Saving(low, high, twice // 2)
