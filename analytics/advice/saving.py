"""What a cache rule saves with another lifetime or other markers."""

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
    """The sum over series.

    Attributes:
        low, high: if all hidden literals differ, and if they are equal.
        ms: the mean of what is saved at least and at most.
    """

    low: Estimate = NOTHING
    high: Estimate = NOTHING
    ms: int = 0

    @property
    def is_safe(self) -> bool:
        """Return True if few enough hits are at risk of being stale."""
        return all(is_within_cap(total.risk_high, total.hits) for total in (self.low, self.high))

    def plus(self, other: Saving) -> Saving:
        return Saving(self.low.plus(other.low), self.high.plus(other.high), self.ms + other.ms)


def find_saving(current: Current, found: Iterable[Series], lifetime: Lifetime) -> Saving:
    """Estimate what is saved if the results of these requests have this lifetime."""
    requests = current.requests
    low = high = NOTHING
    twice = 0
    for series in found:
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
