"""The builds that must be done. A row stays until its build is done (`tenantadmin.lib.jobs.queue`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction
from django.db.models import CharField, Count, Exists, Max, Min, OuterRef, Q
from django.db.models.functions import Cast

from logs.models import Partition, PendingBuild
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs.queue import ATTEMPTS_TO_FAIL, Queue

if TYPE_CHECKING:
    from django.db.models import QuerySet

#: After this time, the task of a build that is not done is sent again.
RETRY: Final = timedelta(seconds=60)
#: The time doubles with each attempt, up to this.
LONGEST_RETRY: Final = timedelta(minutes=10)
#: Months and years wait for a day without a build until it has failed this often: about six minutes.
ATTEMPTS_TO_WAIT_FOR: Final = ATTEMPTS_TO_FAIL

#: How long a day waits that changed while it was built. It is built so often if it changes constantly.
PAUSE: Final = timedelta(seconds=30)
#: How long months and years wait for more days, so that one rebuild serves several.
GATHER: Final = timedelta(seconds=5)

#: How many tasks of one tenant are in the queue at a time, and so how many another tenant's day waits behind.
TENANT_PLACES: Final = 4

BUILDS: Final = Queue(
    name="builds", model=PendingBuild, lease=RETRY, longest=LONGEST_RETRY, places=TENANT_PLACES
)
_AT_ONCE: Final = timedelta()
_BATCH: Final = 1_000


def mark_days(*, tenant: UUID, days: Iterable[date], delay: timedelta = _AT_ONCE) -> None:
    """Record that the raw objects of ``days`` may have changed. Their builds start after ``delay``.

    A day that is already pending keeps its time.
    """
    # In order, so that two callers do not wait for each other's rows.
    _mark([(tenant, day) for day in sorted(set(days))], delay)


def mark_periods(*, tenant: UUID) -> None:
    """Record that a tenant's months, years or history may be stale. Their builds start after `GATHER`."""
    due_at = _mark([(tenant, None)], GATHER)
    # They may have been waiting for the day that was built just now.
    PendingBuild.objects.filter(tenant_id=tenant, day=None, due_at__gt=due_at).update(
        due_at=due_at, attempts=0
    )


def mark_all_periods(*, tenants: Iterable[UUID]) -> None:
    """Record that the months, years and histories of many tenants may be stale."""
    _mark([(tenant, None) for tenant in sorted(tenants)], GATHER)


def _mark(builds: Sequence[tuple[UUID, date | None]], delay: timedelta) -> datetime:
    """Add or mark these pending builds. Return when new ones are due."""
    marked_at = now()
    due_at = marked_at + delay
    PendingBuild.objects.bulk_create(
        [
            PendingBuild(tenant_id=tenant, day=day, marked_at=marked_at, due_at=due_at)
            for tenant, day in builds
        ],
        batch_size=_BATCH,
        update_conflicts=True,
        unique_fields=["tenant_id", "day"],
        update_fields=["mark"],
    )
    return due_at


def read_mark(*, tenant: UUID, day: date | None) -> UUID | None:
    """Return the mark of a pending build, or None. Read it before the objects are listed."""
    rows = PendingBuild.objects.filter(tenant_id=tenant, day=day).values_list("mark", flat=True)
    return rows.first()


def finish_day(*, tenant: UUID, day: date, mark: UUID | None) -> None:
    """Delete the pending build of a finished day, and record that its periods may be stale.

    If the day was marked again after ``mark`` was read, its row stays. Without a mark, do nothing.
    """
    if mark is not None:
        with transaction.atomic():
            mark_periods(tenant=tenant)
            _finish(tenant=tenant, day=day, mark=mark)


def finish_periods(*, tenant: UUID, mark: UUID) -> None:
    """Delete the pending build of a tenant's periods, unless it was marked again after ``mark`` was read."""
    _finish(tenant=tenant, day=None, mark=mark)


def continue_periods(*, tenant: UUID) -> None:
    """Have the other periods of a tenant built by the next run."""
    PendingBuild.objects.filter(tenant_id=tenant, day=None).update(attempts=0, due_at=now())


def _finish(*, tenant: UUID, day: date | None, mark: UUID) -> None:
    rows = PendingBuild.objects.filter(tenant_id=tenant, day=day)
    if not rows.filter(mark=mark).delete()[0]:
        # The new mark is another build, so its attempts count from the beginning.
        moment = now()
        rows.update(attempts=0, marked_at=moment, due_at=moment + (GATHER if day is None else PAUSE))


def postpone(*, tenant: UUID, day: date | None) -> None:
    """Postpone a pending build by `RETRY` because another worker is doing it. The attempt does not count."""
    rows = PendingBuild.objects.filter(tenant_id=tenant, day=day)
    rows.update(attempts=0, due_at=now() + RETRY)


@dataclass(frozen=True, slots=True)
class PendingState:
    """Counts of the pending builds.

    Attributes:
        days: the number of pending days.
        age_seconds: the age of the oldest build.
        failing: the number of builds that failed several times.
        oldest_day: the earliest pending day, or None.
    """

    days: int
    age_seconds: float
    failing: int
    oldest_day: date | None


def pending_state() -> PendingState:
    """Return a summary of what is pending."""
    state = PendingBuild.objects.aggregate(
        days=Count("day"),
        oldest=Min("marked_at"),
        failing=Count("pk", filter=Q(attempts__gt=ATTEMPTS_TO_WAIT_FOR)),
        oldest_day=Min("day"),
    )
    age = now() - state["oldest"] if state["oldest"] else timedelta()
    return PendingState(state["days"], age.total_seconds(), state["failing"], state["oldest_day"])


def last_pending_days(tenants: Iterable[UUID]) -> Mapping[UUID, date]:
    """Return the last pending day of each tenant that has one."""
    days = PendingBuild.objects.filter(tenant_id__in=list(tenants), day__isnull=False)
    return dict(days.order_by().values_list("tenant_id").annotate(Max("day")))


def days_without_build(*, tenant: UUID) -> list[date]:
    """Return the pending days of a tenant that have no build yet, in order.

    Days that could not be built in `ATTEMPTS_TO_WAIT_FOR` attempts are left out.
    """
    rows = _days_without_build().filter(tenant_id=tenant, attempts__lte=ATTEMPTS_TO_WAIT_FOR)
    return sorted(day for day in rows.values_list("day", flat=True) if day is not None)


def pending_days_of(tenant: OuterRef, period: OuterRef) -> QuerySet[PendingBuild]:
    """Return a subquery: the pending days without a build in a period as text (`analytics.periods`)."""
    text = Cast("day", CharField())
    return _days_without_build().filter(tenant_id=tenant).alias(text=text).filter(text__startswith=period)


def _days_without_build() -> QuerySet[PendingBuild]:
    built = Partition.objects.filter(tenant_id=OuterRef("tenant_id"), day=OuterRef("day"))
    return PendingBuild.objects.filter(~Exists(built), day__isnull=False)
