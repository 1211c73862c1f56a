"""The state of jobs, for metrics and for the staff page System."""

from __future__ import annotations

from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING, Final

from django.core.cache import cache

from analytics.models import Build, Mining, ReplayRun

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The cache key of the time when a worker last ran a job of beat.
_BEAT_SEEN: Final = "beat-seen"
_ROWS: Final = 20


def note_beat() -> None:
    """Record that a worker runs a job of beat now."""
    cache.set(_BEAT_SEEN, time(), timeout=None)


def beat_age() -> float | None:
    """Return the seconds since a worker last ran a job of beat, or None if that never happened.

    Raises:
        RedisError: Redis does not answer.
    """
    seen: float | None = cache.get(_BEAT_SEEN)
    return None if seen is None else max(0.0, time() - seen)


def count_running_builds() -> int:
    """Return the number of running builds."""
    return Build.objects.filter(state=Build.State.RUNNING).count()


@dataclass(frozen=True, slots=True)
class LongJobs:
    """Queued and running replays and searches for recommendations: the oldest 20 of each."""

    replays: Sequence[ReplayRun]
    minings: Sequence[Mining]


def find_long_jobs() -> LongJobs:
    """Return the queued and running replays and searches, without their results."""
    replays = ReplayRun.objects.filter(state__in=ReplayRun.UNDER_WAY).order_by("requested_at", "pk")
    minings = Mining.objects.filter(state__in=Mining.UNDER_WAY).order_by("requested_at", "pk")
    return LongJobs(list(replays.defer("result", "rules")[:_ROWS]), list(minings.defer("report")[:_ROWS]))
