"""The rows of this app that wait for a worker, and the state of jobs.

`analytics.tasks.start_jobs` sends the tasks of the rows. Metrics and the staff page System show the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import time
from typing import Final

from django.core.cache import cache
from django.db.models import CharField, Exists, Min, OuterRef, Q, Sum
from django.db.models.functions import Cast, Left

from analytics.models import Alert, Build, DayRollup, Kind, Mining, ReplayRun, SummaryDocument, TenantHealth
from analytics.numbers.merged import HISTORY
from logs.models import PendingBuild
from logs.pending import BUILDS
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs.queue import Queue

#: Tenants whose digests are looked at. A row is due again after the next day or week with entries, or a day.
DIGESTS: Final = Queue(
    name="digests",
    model=TenantHealth,
    lease=timedelta(minutes=5),
    longest=timedelta(hours=2),
    farthest=timedelta(days=1),
)
#: Alerts of live tenants. All of a tenant are evaluated by one task.
ALERTS: Final = Queue(
    name="alerts",
    model=Alert,
    waiting=Q(enabled=True, tenant__isnull=False, tenant__deleted_at=None),
    lease=timedelta(minutes=10),
    longest=timedelta(hours=1),
    places=20,
)
#: A replay or a search that runs stays due, so that one whose worker was killed is noticed.
REPLAYS: Final = Queue(
    name="replays",
    model=ReplayRun,
    waiting=Q(state__in=ReplayRun.UNDER_WAY),
    lease=timedelta(seconds=30),
    longest=timedelta(seconds=30),
)
MININGS: Final = Queue(
    name="searches",
    model=Mining,
    waiting=Q(state__in=Mining.UNDER_WAY),
    lease=timedelta(seconds=30),
    longest=timedelta(seconds=30),
)

#: The cache key of the time when a worker last ran a job of beat.
_BEAT_SEEN: Final = "beat-seen"
_ROWS: Final = 20
#: The length of the period's text, by the kind of document.
_PERIOD_LENGTHS: Final = {
    Kind.MONTH: len("2026-03"),
    **dict.fromkeys((Kind.YEAR, Kind.RULES, Kind.OPPORTUNITIES), len("2026")),
    Kind.USERS: len(HISTORY),
}
#: Staleness is measured over the tenants whose months and years wait longest.
_STALEST_TENANTS: Final = 100


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


def count_failing_jobs() -> dict[str, int]:
    """Return how many jobs fail again and again, by queue. Replays and searches end themselves."""
    return {queue.name: queue.count_failing() for queue in (BUILDS, DIGESTS, ALERTS)}


def count_quarantined() -> int:
    """Return the number of entries in quarantine, of all tenants."""
    return TenantHealth.objects.with_quarantine().aggregate(sum=Sum("quarantined"))["sum"] or 0


def read_staleness() -> dict[str, float]:
    """Return, by kind of document, the age in seconds of the oldest change of a log that no document shows.

    It is 0 if the documents show all changes.
    """
    moment = now()
    pending = PendingBuild.objects.order_by("marked_at")
    unbuilt = pending.filter(day__isnull=False).values_list("marked_at", flat=True).first()
    tenants = list(pending.filter(day=None).values_list("tenant_id", flat=True)[:_STALEST_TENANTS])
    days = DayRollup.objects.filter(tenant_id__in=tenants).alias(text=Cast("day", CharField()))
    oldest = {Kind.DAY: unbuilt}
    for kind, length in _PERIOD_LENGTHS.items():
        period = Left(OuterRef("text"), length) if length else HISTORY
        shown = SummaryDocument.objects.filter(
            tenant_id=OuterRef("tenant_id"), kind=kind, period=period, built_at__gte=OuterRef("built_at")
        )
        built = days.filter(~Exists(shown)).aggregate(oldest=Min("built_at"))["oldest"]
        # What no day shows yet, no month shows either.
        oldest[kind] = min(filter(None, (unbuilt, built)), default=None)
    return {
        kind: 0.0 if first is None else max(0.0, (moment - first).total_seconds())
        for kind, first in oldest.items()
    }


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
