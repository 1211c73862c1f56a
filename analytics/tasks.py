"""Jobs of Celery: beat finds what is stale, workers rebuild it. Every job may run twice or be killed."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime, timedelta
from time import time
from typing import Any, Final
from uuid import UUID

from celery import Task, shared_task
from django.core.cache import cache
from django.db import InterfaceError, OperationalError

from analytics.summaries.builds import delete_old_builds, end_killed_builds
from analytics.summaries.damage import LostRollups
from analytics.summaries.days import find_stale_days, rebuild_day
from analytics.summaries.rebuild import find_stale_periods, rebuild_period
from logs.listing import find_tenants
from logs.locks import Busy
from logs.partitions import delete_superseded
from tenantadmin.objectstore import StoreError, default_store

logger = logging.getLogger(__name__)

#: Days that the look of every minute covers, today among them.
RECENT_DAYS: Final = 3
#: Days that the look at older ones covers each time, for objects that come late; of those before, a part.
LATE_DAYS: Final = 10
#: Seconds from one look at older days to the next; in so many of them it has seen every day.
OLDER_SECONDS: Final = 300
OLDER_PARTS: Final = 12
#: Days that end within this time share one rebuild of the months and years they belong to.
GATHER_SECONDS: Final = 5
#: How much later lost rollups are made again: a store that loses them each time is not kept busy with it.
REPAIR_SECONDS: Final = 60
#: A write that began longer ago was killed.
LONGEST_WRITE: Final = timedelta(days=1)


class RetriedTask(Task[Any, None]):
    """Runs again, later each time, where another worker is at it, or store or database fail."""

    autoretry_for = (Busy, StoreError, OperationalError, InterfaceError)
    retry_backoff = 5
    retry_backoff_max = 300
    retry_jitter = True
    max_retries = 8


@shared_task
def refresh_recent() -> None:
    """Look for new objects in the last days of every tenant, and rebuild where there are some."""
    first = datetime.now(UTC).date() - timedelta(days=RECENT_DAYS - 1)
    for tenant in find_tenants(default_store()):
        refresh_tenant.delay(str(tenant), first.isoformat())


@shared_task
def refresh_older() -> None:
    """Look at those of every tenant's older days whose turn it is, by the clock: beat may start any time."""
    part = int(time() / OLDER_SECONDS) % OLDER_PARTS
    for tenant in find_tenants(default_store()):
        refresh_tenant.delay(str(tenant), None, part)


@shared_task(base=RetriedTask)
def refresh_tenant(tenant: str, first: str | None, part: int | None = None) -> None:
    """Find a tenant's stale days, and fan out one job for each; then its periods.

    Args:
        first: only days from then on; else all of them.
        part: only older days, and of those that are no longer late this part, 0 to `OLDER_PARTS` - 1.
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
    # Those of days built before: their task may be lost, and none of these days need ever be built.
    if find_stale_periods(tenant=UUID(tenant)):
        _request_periods(tenant)


@shared_task(base=RetriedTask)
def refresh_day(tenant: str, day: str) -> None:
    """Rebuild one day where it is stale, then what shows it."""
    if rebuild_day(default_store(), tenant=UUID(tenant), day=date.fromisoformat(day)):
        logger.info("Rebuilt %s of tenant %s", day, tenant)
    _request_periods(tenant)


@shared_task(base=RetriedTask)
def refresh_periods(tenant: str) -> None:
    """Rebuild the months, years and the history of a tenant that are stale."""
    cache.delete(_requested_key(tenant))  # a day that ends from here on asks for another run
    failures: list[Exception] = []
    for period in find_stale_periods(tenant=UUID(tenant)):
        name = period or "the whole history"
        try:
            if rebuild_period(default_store(), tenant=UUID(tenant), period=period):
                logger.info("Rebuilt %s of tenant %s", name, tenant)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:  # noqa: BLE001  # raised below: the others do not wait for it
            logger.warning("Cannot rebuild %s of tenant %s: %s", name, tenant, error)
            failures.append(error)
            if isinstance(error, LostRollups):
                for day in error.days:
                    refresh_day.apply_async((tenant, day.isoformat()), countdown=REPAIR_SECONDS)
    if failures:
        raise failures[0]


@shared_task(base=RetriedTask)
def clean_up() -> None:
    """Delete files that no reader can still be using, and the builds of long ago; end the killed ones."""
    delete_superseded(default_store())
    end_killed_builds()
    delete_old_builds()


@shared_task
def remove_unfinished_writes() -> None:
    """Remove from the store what writes that were killed left there."""
    if removed := default_store().remove_unfinished(age=LONGEST_WRITE):
        logger.info("Removed %d unfinished writes from the store", removed)


def _request_periods(tenant: str) -> None:
    """Ask for one run of `refresh_periods` soon, however many days of the tenant end until then."""
    if cache.add(_requested_key(tenant), value=True, timeout=10 * GATHER_SECONDS):
        refresh_periods.apply_async((tenant,), countdown=GATHER_SECONDS)


def _requested_key(tenant: str) -> str:
    return f"refresh-periods-requested:{tenant}"
