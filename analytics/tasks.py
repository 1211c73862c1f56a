"""Celery tasks: beat finds stale days and periods, and workers rebuild them.

Every task may run twice or be killed at any point.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import date, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from celery import Task, shared_task
from django.conf import settings
from django.db import InterfaceError, OperationalError

from accounts.events import SYSTEM
from accounts.mailing import MAILS
from analytics import queues
from analytics.advice.follow import find_tenants_to_measure, measure_tenant_effects
from analytics.advice.recommend import queue_mining
from analytics.advice.search import find_tenants_to_mine, run_mining
from analytics.assessments.removal import remove_old_assessments
from analytics.jobs.alerts import evaluate_service, evaluate_tenant
from analytics.jobs.digests import delete_old_exchanges, make_due_digests
from analytics.models import Build
from analytics.numbers.by_hours import build_part
from analytics.numbers.days import find_stale_days, rebuild_day
from analytics.numbers.merged import DayBuild, is_month, periods_showing
from analytics.numbers.periods import find_stale_periods, rebuild_period, snapshot_days
from analytics.numbers.state import (
    LostRollups,
    close_failures,
    delete_old_builds,
    end_killed_builds,
    mark_outdated,
)
from analytics.queues import ALERTS, DIGESTS, MININGS, note_beat
from analytics.replay.execution import run_next
from analytics.replay.runs import delete_old_replays
from analytics.watch.alerts import delete_old_messages
from analytics.words.alerts import ALERT_MAILS, ALERT_WEBHOOKS
from analytics.words.digests import DIGEST_MAILS
from logs.notifications import receive_events, take_next
from logs.partitions import delete_superseded
from logs.pending import (
    BUILDS,
    continue_periods,
    days_without_build,
    finish_periods,
    mark_days,
    mark_periods,
    pending_state,
    postpone,
    read_mark,
)
from tenantadmin.lib.core.queues import BUILDING, DEFAULT, REPLAYS
from tenantadmin.lib.database.connections import Busy, build_lock
from tenantadmin.lib.jobs.outbox import send_messages
from tenantadmin.lib.jobs.queue import attempt, start_due
from tenantadmin.lib.objectstore import StoreError, default_store

if TYPE_CHECKING:
    from celery.canvas import Signature

    from logs.models import PendingBuild
    from tenantadmin.lib.jobs.queue import Queue

logger = logging.getLogger(__name__)

#: Seconds between two runs of `start_jobs`, `sweep_logs` and `receive_object_events`.
QUEUE_SECONDS: Final = 2
SWEEP_SECONDS: Final = 60
RECEIVE_SECONDS: Final = 10
#: No more tasks are sent while this many wait in the queue of builds.
MAX_QUEUED: Final = 500
#: The same of replays and searches, which take minutes. Their order does not change any more in the broker.
MAX_LONG: Final = 8
#: An upgrade marks no more days while this many are pending.
MAX_OUTDATED: Final = 1_000
#: A run of periods begins no month after this many seconds. Its files are kept for twice as long (`GRACE`).
MONTHS_SECONDS: Final = 300.0
#: Delay before lost rollups are rebuilt, in case the store loses them again each time.
REPAIR_DELAY: Final = timedelta(seconds=60)
#: A task for a part of a day expires after this many seconds. The build of the day has made the part by then.
PART_SECONDS: Final = 3_600
#: The lock of a tenant's digests, replays and searches, which take minutes. It has one of them at a time, so
#: that they never hold all workers.
LONG_JOB: Final = "long job"
LOOK_AGAIN_SECONDS: Final = 5
#: An unfinished write that began longer ago belongs to a killed process.
LONGEST_WRITE: Final = timedelta(days=1)


class RetriedTask(Task[Any, None]):
    """Retries with growing delays if store or database fail."""

    autoretry_for = (StoreError, OperationalError, InterfaceError)
    retry_backoff = 5
    retry_backoff_max = 300
    retry_jitter = True
    max_retries = 8


# The name of the previous release, so that builds go on while beat or some workers are still of that one.
@shared_task(name="analytics.tasks.queue_builds")
def start_jobs() -> None:
    """Send a task for each job that is due. The cost depends only on the number of due jobs."""
    note_beat()
    for queue, broker_queue, room, make_task in _JOBS:
        start_due(queue, broker_queue=broker_queue, room=room, make_task=make_task)


@shared_task
def sweep_logs() -> None:
    """Start a task that lists the logs of each tenant whose turn it is."""
    for tenant in take_next(default_store(), interval_seconds=SWEEP_SECONDS):
        refresh_tenant.delay(str(tenant))


@shared_task
def refresh_outdated_days() -> None:
    """Mark days and periods that another release made, after an upgrade or on the way back from one.

    It marks few days at a time, so that new logs do not wait long behind them.
    """
    mark_outdated(limit=max(MAX_OUTDATED - pending_state().days, 0))


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
    tenant_id, date_ = UUID(tenant), date.fromisoformat(day)
    if read_mark(tenant=tenant_id, day=date_) is None:
        return  # an earlier task has done it
    with attempt(f"The build of {day}", tenant=tenant):
        try:
            if rebuild_day(default_store(), tenant=tenant_id, day=date_, send_parts=_send_parts):
                logger.info("Rebuilt %s of tenant %s", day, tenant)
        except Busy:
            postpone(tenant=tenant_id, day=date_)
            raise


def _send_parts(tenant: UUID, day: date, stage: str, parts: Mapping[int, str]) -> None:
    """Send a task for each part. The build of the day builds the parts that no task has begun."""
    for number, before in parts.items():
        arguments = (str(tenant), day.isoformat(), stage, number, before)
        build_day_part.apply_async(arguments, expires=PART_SECONDS)


@shared_task
def build_day_part(tenant: str, day: str, stage: str, number: int, before: str) -> None:
    """Build a part of a large day. If this fails, the build of the day does it."""
    with suppress(Busy):
        build_part(
            default_store(),
            tenant=UUID(tenant),
            day=date.fromisoformat(day),
            stage=stage,
            number=number,
            before=before,
        )


@shared_task
def refresh_periods(tenant: str) -> None:
    """Rebuild the stale months, years and history of a tenant, if they are pending.

    A period waits while one of its days has no build yet (`logs.pending.days_without_build`).
    """
    tenant_id = UUID(tenant)
    mark = read_mark(tenant=tenant_id, day=None)
    if mark is None:
        return  # an earlier task has done it
    with attempt("A build of periods", tenant=tenant):
        try:
            with snapshot_days(tenant=tenant_id) as builds:
                is_complete = _rebuild_periods(tenant_id, builds)
                if is_complete:
                    close_failures(Build.objects.filter(tenant_id=tenant_id).of_periods())
        except Busy:
            postpone(tenant=tenant_id, day=None)
            raise
        if is_complete:
            finish_periods(tenant=tenant_id, mark=mark)


def _rebuild_periods(tenant: UUID, builds: Sequence[DayBuild]) -> bool:
    """Rebuild the periods that are stale. Return False if some have to wait.

    Raises:
        Exception: a period failed. The others were built.
    """
    until = monotonic() + MONTHS_SECONDS
    waiting = periods_showing(days_without_build(tenant=tenant))
    stale = find_stale_periods(tenant=tenant, builds=builds)
    failures: list[Exception] = []
    for period in stale:
        if is_month(period) and monotonic() > until:
            continue_periods(tenant=tenant)
            return False
        if period not in waiting and (failure := _rebuild_period(tenant, period, builds)) is not None:
            failures.append(failure)
    # A year that waits for a month that failed is no failure.
    for failure in failures:
        if not isinstance(failure, Busy):
            raise failure
    if failures:
        raise failures[0]
    return waiting.isdisjoint(stale)


def _rebuild_period(tenant: UUID, period: str, builds: Sequence[DayBuild]) -> Exception | None:
    """Rebuild a period. Return an error instead of raising it, so that other periods are built too."""
    name = period or "the whole history"
    try:
        if rebuild_period(default_store(), tenant=tenant, period=period, builds=builds):
            logger.info("Rebuilt %s of tenant %s", name, tenant)
    except Busy as error:
        return error
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
    delete_old_messages()
    remove_old_assessments()


@shared_task
def remove_unfinished_writes() -> None:
    """Remove unfinished writes of killed processes from the object store."""
    if removed := default_store().remove_unfinished(age=LONGEST_WRITE):
        logger.info("Removed %d unfinished writes from the store", removed)


@contextmanager
def _long_job(task: Task[Any, Any], tenant: str) -> Iterator[None]:
    """Hold the lock of a tenant's long jobs. If another worker holds it, look again soon.

    Raises:
        Busy: another worker holds it.
    """
    with ExitStack() as lock:
        try:
            lock.enter_context(build_lock(tenant=UUID(tenant), period=LONG_JOB, wait=False))
        except Busy:
            # The queue lets a row wait longer after each attempt, and a user may wait for this replay.
            task.apply_async((tenant,), countdown=LOOK_AGAIN_SECONDS, expires=PART_SECONDS)
            raise
        yield


@shared_task
def run_replay(tenant: str) -> None:
    """Run the next queued replay of a tenant. If another worker runs one, it will start the next."""
    has_run = False
    with attempt("A replay", tenant=tenant), _long_job(run_replay, tenant):
        has_run = run_next(default_store(), tenant_id=UUID(tenant))
    if has_run:
        run_replay.delay(tenant)


@shared_task
def refresh_digests(tenant: str) -> None:
    """Make the digests of a tenant that are due."""
    with attempt("A digest", tenant=tenant), _long_job(refresh_digests, tenant):
        make_due_digests(default_store(), tenant=UUID(tenant))


@shared_task
def watch_service() -> None:
    """Evaluate the alerts of the service."""
    evaluate_service()


@shared_task
def evaluate_alerts(tenant: str) -> None:
    """Evaluate the alerts of a tenant."""
    with attempt("An evaluation of alerts", tenant=tenant):
        evaluate_tenant(default_store(), tenant=UUID(tenant))


#: All messages, those that are sent first before the others.
OUTBOX: Final = (MAILS, ALERT_WEBHOOKS, ALERT_MAILS, DIGEST_MAILS)


@shared_task
def send_outbox() -> None:
    """Send the messages that are due. Do nothing if another worker does."""
    with suppress(Busy):
        if delivered := send_messages(OUTBOX):
            logger.info("Delivered %d messages", delivered)


@shared_task
def mine_every_tenant() -> None:
    """Queue a search for recommendations for every tenant with recent logs."""
    for tenant in find_tenants_to_mine():
        queue_mining(tenant_id=tenant, actor=SYSTEM)


@shared_task
def mine_tenant(tenant: str) -> None:
    """Run the queued search for recommendations of a tenant, then measure accepted recommendations."""
    with attempt("A search", tenant=tenant), _long_job(mine_tenant, tenant):
        if run_mining(default_store(), tenant_id=UUID(tenant)):
            measure_tenant.delay(tenant)


@shared_task
def measure_effects() -> None:
    """Start a task for each tenant that measures the effects of accepted recommendations."""
    for tenant in find_tenants_to_measure():
        measure_tenant.delay(str(tenant))


@shared_task(base=RetriedTask)
def measure_tenant(tenant: str) -> None:
    """Measure the accepted recommendations of a tenant. Do nothing if another worker does."""
    with suppress(Busy):
        measure_tenant_effects(default_store(), tenant_id=UUID(tenant))


def _build_task(build: PendingBuild) -> Signature[Any]:
    if build.day is None:
        return refresh_periods.si(str(build.tenant_id))
    return refresh_day.si(str(build.tenant_id), build.day.isoformat())


#: The rows that wait for work, the broker's queue of their tasks, how many tasks wait there at most, and the
#: task of a row.
_JOBS: Final[Sequence[tuple[Queue[Any], str, int, Callable[[Any], Signature[Any]]]]] = (
    (BUILDS, BUILDING, MAX_QUEUED, _build_task),
    (DIGESTS, BUILDING, MAX_QUEUED, lambda row: refresh_digests.si(str(row.tenant_id))),
    (ALERTS, DEFAULT, MAX_QUEUED, lambda row: evaluate_alerts.si(str(row.tenant_id))),
    (queues.REPLAYS, REPLAYS, MAX_LONG, lambda row: run_replay.si(str(row.tenant_id))),
    (MININGS, REPLAYS, MAX_LONG, lambda row: mine_tenant.si(str(row.tenant_id))),
)
