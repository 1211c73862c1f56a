"""Jobs of Celery: beat finds what is stale, workers rebuild it. Every job may run twice or be killed."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from celery import Task, shared_task
from django.core.cache import cache
from django.db import InterfaceError, OperationalError

from analytics.builds import delete_old_builds
from analytics.days import find_stale_days, rebuild_day
from analytics.rebuild import find_stale_periods, rebuild_period
from logs.listing import find_tenants
from logs.locks import Busy
from logs.partitions import delete_superseded
from tenantadmin.objectstore import StoreError, default_store

logger = logging.getLogger(__name__)

#: Days that the frequent look covers; older ones are looked at by the full sweep.
RECENT_DAYS: Final = 3
#: Days that end within this time share one rebuild of the months and years they belong to.
GATHER_SECONDS: Final = 5


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
def refresh_all() -> None:
    """Look at every day of every tenant."""
    for tenant in find_tenants(default_store()):
        refresh_tenant.delay(str(tenant), None)


@shared_task(base=RetriedTask)
def refresh_tenant(tenant: str, first: str | None) -> None:
    """Find a tenant's stale days from ``first`` on, and fan out one job for each; then its periods."""
    since = date.fromisoformat(first) if first else None
    days = find_stale_days(default_store(), tenant=UUID(tenant), first=since)
    for day in days:
        refresh_day.delay(tenant, day.isoformat())
    if not days:
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
    for period in find_stale_periods(tenant=UUID(tenant)):
        if rebuild_period(default_store(), tenant=UUID(tenant), period=period):
            logger.info("Rebuilt %s of tenant %s", period or "the whole history", tenant)


@shared_task(base=RetriedTask)
def clean_up() -> None:
    """Delete files that no reader can still be using, and the builds of long ago."""
    delete_superseded(default_store())
    delete_old_builds()


def _request_periods(tenant: str) -> None:
    """Ask for one run of `refresh_periods` soon, however many days of the tenant end until then."""
    if cache.add(_requested_key(tenant), value=True, timeout=10 * GATHER_SECONDS):
        refresh_periods.apply_async((tenant,), countdown=GATHER_SECONDS)


def _requested_key(tenant: str) -> str:
    return f"refresh-periods-requested:{tenant}"
