"""The queue of builds in the database. A row stays until its build is done.

Celery's queues may lose a task, and a worker may be killed. Each row is therefore sent as a task again and
again while it exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import CharField, Count, Exists, Max, Min, OuterRef, Q, Window
from django.db.models.functions import Cast, RowNumber

from logs.models import Partition, PendingBuild
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date, datetime
    from uuid import UUID

    from django.db.models import QuerySet

#: After this time, the task of a build that is not done is sent again.
RETRY: Final = timedelta(seconds=60)
#: The time doubles with each attempt, up to this.
LONGEST_RETRY: Final = timedelta(minutes=10)
#: Months and years wait for a day without a build until it has failed this often: about six minutes.
ATTEMPTS_TO_WAIT_FOR: Final = 3

#: How long a day waits that changed while it was built. It is built so often if it changes constantly.
PAUSE: Final = timedelta(seconds=30)
#: How long months and years wait for more days, so that one rebuild serves several.
GATHER: Final = timedelta(seconds=5)

#: How many tasks of one tenant are in the queue at a time, and so how many another tenant's day waits behind.
TENANT_PLACES: Final = 4

_AT_ONCE: Final = timedelta()
_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class DueBuild:
    """A build to send as a task. ``day`` is None for the months, years and history of the tenant."""

    tenant: UUID
    day: date | None


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


def take_due(*, limit: int) -> list[DueBuild]:
    """Return builds whose tasks must be sent now: of each tenant in turn, the longest waiting first.

    A tenant has `TENANT_PLACES` in the queue of tasks, whatever waits. Each build counts as an attempt, and
    is due again after `RETRY` or, after failures, later. A build that is due even later got its time from a
    clock that has been set back since.
    """
    moment = now()
    PendingBuild.objects.filter(due_at__gt=moment + LONGEST_RETRY).update(due_at=moment)
    places = _choose(limit)
    with transaction.atomic():
        found = PendingBuild.objects.select_for_update(skip_locked=True).filter(due_at__lte=now())
        rows = sorted(found.filter(pk__in=places), key=lambda row: places[row.pk])
        for row in rows:
            row.due_at = now() + min(RETRY * 2**row.attempts, LONGEST_RETRY)
            row.attempts = min(row.attempts + 1, 30)
        PendingBuild.objects.bulk_update(rows, ["due_at", "attempts"], batch_size=_BATCH)
    return [DueBuild(row.tenant_id, row.day) for row in rows]


def _choose(limit: int) -> dict[int, int]:
    """Return the order of the builds whose turn it is, by their ids."""
    moment = now()
    # One that failed waits longer for its next attempt, but holds no place.
    under_way = PendingBuild.objects.filter(attempts=1, due_at__gt=moment).order_by()
    taken = dict(under_way.values_list("tenant_id").annotate(Count("pk")))
    turn = Window(RowNumber(), partition_by="tenant_id", order_by=["due_at", "id"])
    due = PendingBuild.objects.filter(due_at__lte=moment).annotate(turn=turn).filter(turn__lte=TENANT_PLACES)
    rows = due.order_by("turn", "due_at", "id").values_list("pk", "tenant_id", "turn")
    chosen = [pk for pk, tenant, turn in rows if turn + taken.get(tenant, 0) <= TENANT_PLACES]
    return {pk: place for place, pk in enumerate(chosen[:limit])}


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
