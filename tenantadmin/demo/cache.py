"""The Gateway's cache as the demo plays it: results with a time to live, and markers that make them stale."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from enum import StrEnum


class Finding(StrEnum):
    """What the cache says of a key. All but the first two are reasons of a MISS, as the log words them."""

    FRESH = "fresh"
    IN_FLIGHT = "in-flight"
    ABSENT = "no-cache-entry"
    EXPIRED = "ttl-expired"
    INVALIDATED = "invalidation-marker"


@dataclass(frozen=True, slots=True)
class Result:
    """A stored result: when it was born and when it expires (epoch ms), and its bytes."""

    born_at: int
    expires_at: int
    size: int


class ResultCache:
    """Results by key and markers by rule. A result is born when the warehouse is done."""

    def __init__(self) -> None:
        self._results: dict[str, Result] = {}
        self._markers: dict[str, list[int]] = {}

    def find(self, key: str, *, rule_id: str, at: int) -> tuple[Finding, Result | None]:
        """What is known of ``key`` at a time; the result stands beside FRESH and IN_FLIGHT."""
        result = self._results.get(key)
        if result is None:
            return Finding.ABSENT, None
        if at < result.born_at:
            return Finding.IN_FLIGHT, result
        if at >= result.expires_at:
            return Finding.EXPIRED, None
        markers = self._markers.get(rule_id, [])
        if bisect_right(markers, at) > bisect_right(markers, result.born_at):
            return Finding.INVALIDATED, None
        return Finding.FRESH, result

    def store(self, key: str, *, born_at: int, ttl_seconds: int, size: int) -> Result:
        """Keep a result from ``born_at`` for ``ttl_seconds``."""
        result = self._results[key] = Result(born_at, born_at + ttl_seconds * 1000, size)
        return result

    def mark(self, rule_id: str, *, at: int) -> None:
        """Make every result of a rule that was born until ``at`` stale from then on."""
        insort(self._markers.setdefault(rule_id, []), at)
