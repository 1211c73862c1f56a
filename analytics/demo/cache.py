"""A simulation of the Gateway's cache: results with a time to live, and markers that make them stale."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from enum import StrEnum


class CacheState(StrEnum):
    """The state of a key in the cache. All but the first two are values of the log's ``missReason``."""

    FRESH = "fresh"
    IN_FLIGHT = "in-flight"
    ABSENT = "no-cache-entry"
    EXPIRED = "ttl-expired"
    INVALIDATED = "invalidation-marker"


@dataclass(frozen=True, slots=True)
class Result:
    """A stored result: when it was computed and when it expires (epoch ms), and its size in bytes."""

    born_at: int
    expires_at: int
    size: int


class ResultCache:
    """Results by key, and markers by rule. A result can be used from ``born_at``: the warehouse is done."""

    def __init__(self) -> None:
        self._results: dict[str, Result] = {}
        self._markers: dict[str, list[int]] = {}

    def find(self, key: str, *, rule_id: str, at: int) -> tuple[CacheState, Result | None]:
        """Return the state of ``key`` at a time, and the result if the state is FRESH or IN_FLIGHT."""
        result = self._results.get(key)
        if result is None:
            return CacheState.ABSENT, None
        if at < result.born_at:
            return CacheState.IN_FLIGHT, result
        if at >= result.expires_at:
            return CacheState.EXPIRED, None
        markers = self._markers.get(rule_id, [])
        if bisect_right(markers, at) > bisect_right(markers, result.born_at):
            return CacheState.INVALIDATED, None
        return CacheState.FRESH, result

    def store(self, key: str, *, born_at: int, ttl_seconds: int, size: int) -> Result:
        """Store a result from ``born_at`` for ``ttl_seconds``."""
        result = self._results[key] = Result(born_at, born_at + ttl_seconds * 1000, size)
        return result

    def mark(self, rule_id: str, *, at: int) -> None:
        """From ``at`` on, make all results of a rule stale that were computed until then."""
        insort(self._markers.setdefault(rule_id, []), at)
