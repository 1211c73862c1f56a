"""Celery tasks: beat finds stale days and periods, workers rebuild them.

Every task may run twice or be killed at any point.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from time import time
from typing import Any, Final
from uuid import UUID

from celery import Task, shared_task
from django.core.cache import cache
from django.db import InterfaceError, OperationalError

from analytics.replay.runs import delete_old_replays, fail_lost_replays, find_queued_tenants, run_next
from analytics.summaries.builds import delete_old_builds, end_killed_builds
from analytics.summaries.damage import LostRollups
from analytics.summaries.days import find_stale_days, rebuild_day
from analytics.summaries.rebuild import find_stale_periods, rebuild_period
from logs.listing import find_tenants
from logs.locks import Busy
from logs.partitions import delete_superseded
from tenantadmin.objectstore import StoreError, default_store

logger = logging.getLogger(__name__)

#: `refresh_recent` checks this many days, today included, every minute.
RECENT_DAYS: Final = 3
#: `refresh_older` checks the days up to this age each time, because objects may come late. Still older days
#: are divided into parts, and each run checks one part.
LATE_DAYS: Final = 10
OLDER_PARTS: Final = 12
#: Seconds between two runs of `refresh_older`.
OLDER_SECONDS: Final = 300
#: Seconds to wait before months and years are rebuilt, so that several rebuilt days share one rebuild.
GATHER_SECONDS: Final = 5
#: Seconds to wait before lost rollups are rebuilt, in case the store loses them again each time.
REPAIR_SECONDS: Final = 60
#: Seconds between two runs of `watch_replays`.
WATCH_SECONDS: Final = 30
#: An unfinished write that began longer ago was killed.
LONGEST_WRITE: Final = timedelta(days=1)


class RetriedTask(Task[Any, None]):
    """Retries with growing delays if another worker builds the same period, or if store or database fail."""

    autoretry_for = (Busy, StoreError, OperationalError, InterfaceError)
    retry_backoff = 5
    retry_backoff_max = 300
    retry_jitter = True
    max_retries = 8


@shared_task
def refresh_recent() -> None:
    """Check the last days of every tenant for new objects."""
    first = datetime.now(UTC).date() - timedelta(days=RECENT_DAYS - 1)
    for tenant in find_tenants(default_store()):
        refresh_tenant.delay(str(tenant), first.isoformat())


@shared_task
def refresh_older() -> None:
    """Check one part of the older days of every tenant. The clock chooses the part: beat has no state."""
    part = int(time() / OLDER_SECONDS) % OLDER_PARTS
    for tenant in find_tenants(default_store()):
        refresh_tenant.delay(str(tenant), None, part)


@shared_task(base=RetriedTask)
def refresh_tenant(tenant: str, first: str | None, part: int | None = None) -> None:
    """Start a task for each stale day of a tenant, and one for its stale periods.

    Args:
        first: check only this day and later ones. None means all days.
        part: check only days older than `RECENT_DAYS`; of those older than `LATE_DAYS`, only this part
            (0 to `OLDER_PARTS` - 1).
    """
    since = date.fromisoformat(first) if first else None
    today = datetime.now(UTC).date()

    def is_due(day: date) -> bool:
        age = (today - day).days
        is_its_turn = age < LATE_DAYS or day.toordinal() % OLDER_PARTS == part
        return part is None or (age >= RECENT_DAYS and is_its_turn)

    days = find_stale_days(default_store(), tenant=UUID(tenant), first=since, is_wanted=is_due)
    for day in days:
        refresh_day.delay(tenant, day.isoformat())
    # Periods can be stale without a stale day: the task that follows a rebuilt day may have been lost.
    if find_stale_periods(tenant=UUID(tenant)):
        _request_periods(tenant)


@shared_task(base=RetriedTask)
def refresh_day(tenant: str, day: str) -> None:
    """Rebuild a day if it is stale, then the periods that contain it."""
    if rebuild_day(default_store(), tenant=UUID(tenant), day=date.fromisoformat(day)):
        logger.info("Rebuilt %s of tenant %s", day, tenant)
    _request_periods(tenant)


@shared_task(base=RetriedTask)
def refresh_periods(tenant: str) -> None:
    """Rebuild the stale months, years and history of a tenant."""
    cache.delete(_requested_key(tenant))  # a day that is rebuilt from now on starts another run
    failures: list[Exception] = []
    for period in find_stale_periods(tenant=UUID(tenant)):
        name = period or "the whole history"
        try:
            if rebuild_period(default_store(), tenant=UUID(tenant), period=period):
                logger.info("Rebuilt %s of tenant %s", name, tenant)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:  # noqa: BLE001  # raised below, after the other periods
            logger.warning("Cannot rebuild %s of tenant %s: %s", name, tenant, error)
            failures.append(error)
            if isinstance(error, LostRollups):
                for day in error.days:
                    refresh_day.apply_async((tenant, day.isoformat()), countdown=REPAIR_SECONDS)
    if failures:
        raise failures[0]


@shared_task(base=RetriedTask)
def clean_up() -> None:
    """Delete superseded files and old build records, and mark killed builds as failed."""
    delete_superseded(default_store())
    end_killed_builds()
    delete_old_builds()
    delete_old_replays()


@shared_task
def remove_unfinished_writes() -> None:
    """Remove the remains of killed writes from the object store."""
    if removed := default_store().remove_unfinished(age=LONGEST_WRITE):
        logger.info("Removed %d unfinished writes from the store", removed)


@shared_task
def run_replay(tenant: str) -> None:
    """Run the next queued replay of a tenant. If another worker runs one, that worker starts the next."""
    with suppress(Busy):
        if run_next(default_store(), tenant_id=UUID(tenant)):
            run_replay.delay(tenant)


@shared_task
def watch_replays() -> None:
    """Fail the replays whose worker is gone, and start queued ones whose task was lost."""
    fail_lost_replays()
    for tenant in find_queued_tenants():
        run_replay.apply_async((str(tenant),), expires=WATCH_SECONDS)


def _request_periods(tenant: str) -> None:
    """Start `refresh_periods` in a few seconds, once for all days of the tenant rebuilt until then."""
    if cache.add(_requested_key(tenant), value=True, timeout=10 * GATHER_SECONDS):
        refresh_periods.apply_async((tenant,), countdown=GATHER_SECONDS)


def _requested_key(tenant: str) -> str:
    return f"refresh-periods-requested:{tenant}"
