"""Celery tasks: beat finds stale days and periods, and workers rebuild them.

Every task may run twice or be killed at any point.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from celery import Task, shared_task
from django.conf import settings
from django.db import InterfaceError, OperationalError

from accounts.events import SYSTEM
from analytics.advice.effects import find_tenants_to_measure, measure_tenant_effects
from analytics.advice.mining import find_tenants_to_mine, find_waiting_tenants, queue_mining, run_mining
from analytics.digest.mailing import send_mails
from analytics.digest.making import make_digest, take_due_digests
from analytics.digest.model_text import delete_old_exchanges
from analytics.digest.periods import DigestPeriod
from analytics.replay.execution import fail_lost_replays, find_queued_tenants, run_next
from analytics.replay.runs import delete_old_replays
from analytics.service_state import note_beat
from analytics.summaries.builds import delete_old_builds, end_killed_builds
from analytics.summaries.by_hours import build_part
from analytics.summaries.damage import LostRollups
from analytics.summaries.days import find_stale_days, mark_outdated_days, rebuild_day
from analytics.summaries.periods import periods_showing
from analytics.summaries.rebuild import find_stale_periods, rebuild_period
from logs.locks import Busy
from logs.notifications import receive_events
from logs.partitions import delete_superseded
from logs.pending import (
    RETRY,
    days_without_build,
    finish_periods,
    mark_days,
    mark_periods,
    pending_state,
    postpone,
    read_mark,
    take_due,
)
from logs.sweep import take_next
from tenantadmin.lib.core.queues import BUILDING, queue_length
from tenantadmin.lib.objectstore import StoreError, default_store

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger(__name__)

#: Seconds between two runs of `queue_builds`, `sweep_logs` and `receive_object_events`.
QUEUE_SECONDS: Final = 10
SWEEP_SECONDS: Final = 60
RECEIVE_SECONDS: Final = 10
#: While this many tasks wait in the queue of builds, no more are sent.
MAX_QUEUED: Final = 500
#: While so many days are pending, an upgrade adds no more.
MAX_OUTDATED: Final = 1_000
#: Wait so long before lost rollups are rebuilt, in case the store loses them again each time.
REPAIR_DELAY: Final = timedelta(seconds=60)
#: Seconds between two runs of `watch_replays`.
WATCH_SECONDS: Final = 30
#: A digest that no worker makes within so many seconds is sent again.
DIGEST_SECONDS: Final = 300
#: A task for a part of a day that no worker begins within so many seconds is not needed any more.
PART_SECONDS: Final = 3_600
#: An unfinished write that began longer ago was killed.
LONGEST_WRITE: Final = timedelta(days=1)


class RetriedTask(Task[Any, None]):
    """Retries with growing delays if store or database fail."""

    autoretry_for = (StoreError, OperationalError, InterfaceError)
    retry_backoff = 5
    retry_backoff_max = 300
    retry_jitter = True
    max_retries = 8


@shared_task
def queue_builds() -> None:
    """Send a task for each pending build that is due. The cost depends on what changed alone."""
    note_beat()
    for build in take_due(limit=max(MAX_QUEUED - queue_length(BUILDING), 0)):
        # When the task expires, the build is due again.
        options: Any = {"expires": RETRY.total_seconds()}
        if build.day is None:
            refresh_periods.apply_async((str(build.tenant),), **options)
        else:
            refresh_day.apply_async((str(build.tenant), build.day.isoformat()), **options)


@shared_task
def sweep_logs() -> None:
    """Start a task that lists the logs of each tenant whose turn it is."""
    for tenant in take_next(default_store(), interval_seconds=SWEEP_SECONDS):
        refresh_tenant.delay(str(tenant))


@shared_task
def refresh_outdated_days() -> None:
    """After an upgrade, mark the days whose rollups an earlier version made: so many at a time that new logs
    do not wait long behind them.
    """
    mark_outdated_days(limit=max(MAX_OUTDATED - pending_state().days, 0))


@shared_task(base=RetriedTask)
def refresh_tenant(tenant: str) -> None:
    """List all raw logs of a tenant. Mark the days that changed and, if some are stale, the periods."""
    mark_days(tenant=UUID(tenant), days=find_stale_days(default_store(), tenant=UUID(tenant)))
    if find_stale_periods(tenant=UUID(tenant)):
        mark_periods(tenant=UUID(tenant))


@shared_task
def receive_object_events() -> None:
    """Mark the days of objects that S3 has announced, if a queue is configured."""
    if settings.OBJECT_EVENTS_QUEUE_URL:
        receive_events(settings.OBJECT_EVENTS_QUEUE_URL, seconds=RECEIVE_SECONDS)


@shared_task
def refresh_day(tenant: str, day: str) -> None:
    """Rebuild a pending day if it is stale. If this fails or is killed, the day stays pending."""
    which: Any = {"tenant": UUID(tenant), "day": date.fromisoformat(day)}
    if read_mark(**which) is None:
        return  # an earlier task has done it
    try:
        if rebuild_day(default_store(), **which, send_parts=_send_parts):
            logger.info("Rebuilt %s of tenant %s", day, tenant)
    except Busy:
        postpone(**which)


def _send_parts(tenant: UUID, day: date, stage: str, parts: Mapping[int, str]) -> None:
    """Send a task for each part. The build of the day builds the parts that no task has begun."""
    for number, before in parts.items():
        arguments = (str(tenant), day.isoformat(), stage, number, before)
        build_day_part.apply_async(arguments, expires=PART_SECONDS)


@shared_task
def build_day_part(tenant: str, day: str, stage: str, number: int, before: str) -> None:
    """Build a part of a large day. If this fails, the build of the day does it."""
    which: Any = {"tenant": UUID(tenant), "day": date.fromisoformat(day)}
    with suppress(Busy):
        build_part(default_store(), **which, stage=stage, number=number, before=before)


@shared_task
def refresh_periods(tenant: str) -> None:
    """Rebuild the stale months, years and history of a tenant, if they are pending.

    Those with a day that has no build yet wait for it (`logs.pending.days_without_build`).
    """
    tenant_id = UUID(tenant)
    mark = read_mark(tenant=tenant_id, day=None)
    if mark is None:
        return  # an earlier task has done it
    waiting = periods_showing(days_without_build(tenant=tenant_id))
    stale = find_stale_periods(tenant=tenant_id)
    failures = [
        failure
        for period in stale
        if period not in waiting and (failure := _rebuild_period(tenant_id, period)) is not None
    ]
    for failure in failures:
        if not isinstance(failure, Busy):
            raise failure
    if failures:
        postpone(tenant=tenant_id, day=None)
    elif waiting.isdisjoint(stale):
        finish_periods(tenant=tenant_id, mark=mark)


def _rebuild_period(tenant: UUID, period: str) -> Exception | None:
    """Rebuild a period. Return what failed, so that the other periods are built too."""
    name = period or "the whole history"
    try:
        if rebuild_period(default_store(), tenant=tenant, period=period):
            logger.info("Rebuilt %s of tenant %s", name, tenant)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:  # noqa: BLE001  # the caller raises it after the other periods
        logger.warning("Cannot rebuild %s of tenant %s: %s", name, tenant, error)
        if isinstance(error, LostRollups):
            mark_days(tenant=tenant, days=error.days, delay=REPAIR_DELAY)
        return error
    return None


@shared_task(base=RetriedTask)
def clean_up() -> None:
    """Delete superseded files and old build records, and mark killed builds as failed."""
    delete_superseded(default_store())
    end_killed_builds()
    delete_old_builds()
    delete_old_replays()
    delete_old_exchanges()


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


@shared_task
def refresh_digests() -> None:
    """Start a task for each digest that is missing or stale: its day has ended, or a build has changed."""
    for tenant, periods in take_due_digests():
        for period in periods:
            # A digest that no worker makes in time is found again.
            refresh_digest.apply_async((str(tenant), period), expires=DIGEST_SECONDS)


@shared_task(base=RetriedTask)
def refresh_digest(tenant: str, period: str) -> None:
    """Make a digest if it is missing or stale."""
    with suppress(Busy):
        make_digest(default_store(), tenant=UUID(tenant), period=DigestPeriod.named(period))


@shared_task
def mail_digests() -> None:
    """Send the digests that wait to be mailed."""
    if sent := send_mails():
        logger.info("Mailed %d digests", sent)


@shared_task
def mine_every_tenant() -> None:
    """Search for recommendations for every tenant with recent logs."""
    for tenant in find_tenants_to_mine():
        mine_again.delay(str(tenant))


@shared_task(base=RetriedTask)
def mine_again(tenant: str) -> None:
    """Search for recommendations for the rules and the log as they are now."""
    queue_mining(tenant_id=UUID(tenant), actor=SYSTEM)
    mine_tenant.delay(tenant)


@shared_task
def mine_tenant(tenant: str) -> None:
    """Run the queued search for recommendations of a tenant, and measure what was accepted.

    If another worker runs it, do nothing.
    """
    with suppress(Busy):
        if run_mining(default_store(), tenant_id=UUID(tenant)):
            measure_tenant.delay(tenant)


@shared_task
def watch_minings() -> None:
    """Start the searches whose task was lost or whose worker is gone."""
    for tenant in find_waiting_tenants():
        mine_tenant.apply_async((str(tenant),), expires=WATCH_SECONDS)


@shared_task
def measure_effects() -> None:
    """Measure what accepted recommendations did, one task for each tenant."""
    for tenant in find_tenants_to_measure():
        measure_tenant.delay(str(tenant))


@shared_task(base=RetriedTask)
def measure_tenant(tenant: str) -> None:
    """Measure the accepted recommendations of a tenant. If another worker does, do nothing."""
    with suppress(Busy):
        measure_tenant_effects(default_store(), tenant_id=UUID(tenant))
