"""Queue, run, cancel and expire replays. Contract: docs/replay.md."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import duckdb
import orjson
from django.conf import settings
from django.db import IntegrityError, connection, transaction

from accounts.limits import count_use
from accounts.models import Tenant
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from analytics.models import ReplayRun
from analytics.replay.errors import ReplayEnded, ReplayNotFound, TooLarge, TooManyReplays
from analytics.replay.inputs import Input, Request, collect_input
from analytics.replay.replay import replay
from analytics.summaries.engine import new_engine
from logs.locks import Busy, build_lock
from rules.errors import RulesetRejected
from rules.in_force import choose_rules
from rules.write import lint_document
from tenantadmin.core.errors import Detail, NotFound, ValidationFailed
from tenantadmin.core.rendering import strong_etag
from tenantadmin.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date
    from uuid import UUID

    from django.db.models import QuerySet

    from tenantadmin.objectstore import ObjectStore

logger = logging.getLogger(__name__)

#: How many finished runs of a tenant are kept, and for how long.
_KEPT: Final = 50
_LIFETIME: Final = timedelta(days=30)
#: How much lower the priority of a replay is: without it, queries beside one take 1.8 times as long.
_NICENESS: Final = 10
#: Seconds between two looks whether a running replay must end.
_LOOK_SECONDS: Final = 1.0
_LOST: Final = "The worker ended before the replay did. Request it again."


@dataclass(frozen=True, slots=True)
class Subject:
    """The ruleset to replay: its complete rules, and how the run names it."""

    rules: Sequence[Mapping[str, Any]]
    name: Mapping[str, Any]


def _read_subject(tenant_id: UUID, *, rules: object, seq: int | None, draft_id: UUID | None) -> Subject:
    """Return the ruleset that a request names: by its rules, as a revision, or as a draft.

    Raises:
        RulesetRejected, ValidationFailed: the rules do not pass lint; not exactly one way was chosen; or
            there is no such revision or draft.
    """
    if sum(given is not None for given in (rules, seq, draft_id)) != 1:
        raise ValidationFailed.at("", "invalid", "Give one of 'rules', 'seq' and 'draftId'.")
    if rules is None:
        chosen = choose_rules(tenant_id, seq=seq, draft_id=draft_id)
        name = {"seq": seq} if draft_id is None else {"draftId": str(draft_id)}
        return Subject(chosen.rules, name)
    result = lint_document({"rules": rules})
    if result.normalized is None:
        raise RulesetRejected(result)
    complete = list(result.normalized)
    digest = hashlib.sha256(orjson.dumps(complete, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return Subject(complete, {"digest": digest})


def queue_replay(
    *,
    tenant_id: UUID,
    first_day: date,
    last_day: date,
    warmup_days: int,
    gateway: Mapping[str, bool],
    actor: str,
    rules: object = None,
    seq: int | None = None,
    draft_id: UUID | None = None,
) -> ReplayRun:
    """Return the run of this input: a finished one, one that is under way, or a new one in the queue.

    The ruleset is given by its ``rules``, as the revision ``seq``, or as a draft. A run that failed or was
    cancelled is queued again. The caller starts the task for a queued run.

    Raises:
        TenantNotFound: there is no such live tenant.
        RulesetRejected, ValidationFailed: see `_read_subject`; or the days are none.
        TooLarge: the days are over a cap.
        TooManyReplays: too many replays of the tenant wait.
        RateLimited: the tenant has started too many replays.
    """
    require_live_tenant(tenant_id)
    subject = _read_subject(tenant_id, rules=rules, seq=seq, draft_id=draft_id)
    days = (last_day - first_day).days + 1
    if days < 1:
        raise ValidationFailed.at("/to", "invalid", "'to' is before 'from'.")
    if days > settings.REPLAY_MAX_DAYS:
        _refuse_size("days", days, settings.REPLAY_MAX_DAYS)
    collected = collect_input(Request(tenant_id, subject.rules, first_day, last_day, warmup_days, gateway))
    if collected.rows > settings.REPLAY_MAX_ROWS:
        _refuse_size("log entries", collected.rows, settings.REPLAY_MAX_ROWS)
    digest = collected.digest()
    with transaction.atomic():
        # One request of a tenant at a time is counted.
        if not Tenant.objects.select_for_update(no_key=True).filter(pk=tenant_id, deleted_at__isnull=True):
            raise TenantNotFound
        run = ReplayRun.objects.filter(tenant_id=tenant_id, digest=digest).first()
        if run is not None and run.state not in {ReplayRun.State.FAILED, ReplayRun.State.CANCELLED}:
            return run
        _require_capacity(tenant_id)
        if run is not None:
            run.delete()
        return ReplayRun.objects.create(
            tenant_id=tenant_id,
            digest=digest,
            subject=subject.name,
            rules=subject.rules,
            first_day=first_day,
            last_day=last_day,
            warmup_days=warmup_days,
            gateway=gateway,
            requested_by=actor,
        )


def _refuse_size(what: str, count: int, limit: int) -> None:
    message = f"The replay has {count} {what}; at most {limit} are allowed. Choose fewer days."
    raise TooLarge(message, details=[Detail("/from", "out-of-range", message)])


def _require_capacity(tenant_id: UUID) -> None:
    runs = ReplayRun.objects.filter(tenant_id=tenant_id)
    if runs.filter(state=ReplayRun.State.QUEUED).count() >= settings.REPLAY_QUEUE:
        raise TooManyReplays(retry_after=int(settings.REPLAY_TIMEOUT_SECONDS))
    count_use(limit=settings.REPLAY_LIMIT, kind="replay", key=str(tenant_id))


def run_next(store: ObjectStore, *, tenant_id: UUID) -> bool:
    """Run the tenant's oldest queued replay, if none is running. Return False if there is nothing to do.

    A run that another worker left behind is marked as failed first.

    Raises:
        Busy: another worker runs a replay of this tenant.
    """
    with build_lock(tenant=tenant_id, period="replay", wait=False):
        _fail_lost(tenant_id)
        runs = ReplayRun.objects.filter(tenant_id=tenant_id, state=ReplayRun.State.QUEUED)
        run = runs.order_by("requested_at", "replay_id").first()
        if run is None:
            return False
        if runs.filter(pk=run.pk).update(state=ReplayRun.State.RUNNING, started_at=now(), progress=0):
            _execute_at_low_priority(store, run)
        return True


def _execute_at_low_priority(store: ObjectStore, run: ReplayRun) -> None:
    """Run a replay in a thread to which the machine gives time when queries and builds need none.

    On Linux, a priority is that of a thread, and a worker could not raise its own again.
    """
    with ThreadPoolExecutor(1, initializer=os.nice, initargs=(_NICENESS,)) as pool:
        execution = pool.submit(_execute, store, run)
        try:
            execution.result()
        except (KeyboardInterrupt, SystemExit):
            # The replay sees this within a second, and ends.
            _finish(run.pk, ReplayRun.State.CANCELLED)
            raise


def _execute(store: ObjectStore, run: ReplayRun) -> None:
    """Run a replay that is marked as running, and record how it ended."""
    try:
        collected = _collect(run)
        limit = f"{settings.REPLAY_MEMORY_BYTES}B"
        with (
            new_engine(store, memory_limit=limit, threads=settings.REPLAY_THREADS) as engine,
            _watched(engine.connection, run.pk) as watch,
        ):

            def report(progress: float) -> None:
                watch.check()
                _running(run.pk).update(progress=progress)

            result = replay(engine.connection, collected.as_job(store), report=report)
            watch.check()
    except ReplayEnded as error:
        _finish(run.pk, ReplayRun.State.FAILED, error=str(error))
    except NotFound:
        _finish(run.pk, ReplayRun.State.CANCELLED, error="The tenant was deleted.")
    except Exception as error:
        _finish(run.pk, ReplayRun.State.FAILED, error="The replay failed. Request it again.")
        logger.exception("Replay %s of tenant %s failed: %s", run.pk, run.tenant_id, error)  # noqa: TRY401
    else:
        result["evidence"] = _evidence(run)
        _finish(run.pk, ReplayRun.State.DONE, result=result, progress=1.0)
    finally:
        # That of the thread.
        connection.close()


def _collect(run: ReplayRun) -> Input:
    """Return the input of a run as it is now. Days may have been rebuilt since the run was queued.

    Raises:
        TenantNotFound: the tenant was deleted.
        ReplayEnded: another run has this input by now.
    """
    collected = collect_input(
        Request(run.tenant_id, run.rules, run.first_day, run.last_day, run.warmup_days, run.gateway)
    )
    digest = collected.digest()
    try:
        with transaction.atomic():
            ReplayRun.objects.filter(pk=run.pk).exclude(digest=digest).update(digest=digest)
    except IntegrityError:
        raise ReplayEnded("The log was rebuilt, and another replay has the same input now.") from None
    return collected


class _Watch:
    """Ends a replay that was cancelled, whose tenant is gone, or that takes too long."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, replay_id: UUID) -> None:
        self._engine, self._replay_id = engine, replay_id
        self._deadline = time.monotonic() + settings.REPLAY_TIMEOUT_SECONDS
        self._stopped = threading.Event()
        self._reason = ""

    def check(self) -> None:
        """Raise ReplayEnded if the replay must end."""
        if self._reason:
            raise ReplayEnded(self._reason)

    def stop(self) -> None:
        self._stopped.set()

    def watch(self) -> None:
        """Look again and again, until `stop`."""
        try:
            while not self._stopped.wait(_LOOK_SECONDS):
                self._reason = self._reason or self._find_reason()
                if self._reason:
                    self._engine.interrupt()
        finally:
            connection.close()

    def _find_reason(self) -> str:
        if time.monotonic() > self._deadline:
            return (
                f"The replay took more than {settings.REPLAY_TIMEOUT_SECONDS:g} seconds. Choose fewer days."
            )
        run = ReplayRun.objects.filter(pk=self._replay_id).values_list("tenant_id", "state").first()
        if run is None or run[1] != ReplayRun.State.RUNNING:
            return "The replay was cancelled."
        if not Tenant.objects.filter(pk=run[0], deleted_at__isnull=True).exists():
            return "The tenant was deleted."
        return ""


@contextmanager
def _watched(engine: duckdb.DuckDBPyConnection, replay_id: UUID) -> Iterator[_Watch]:
    watch = _Watch(engine, replay_id)
    thread = threading.Thread(target=watch.watch, name=f"watch-replay-{replay_id}", daemon=True)
    thread.start()
    try:
        yield watch
    except duckdb.InterruptException:
        watch.check()
        raise
    finally:
        watch.stop()
        thread.join()


def _running(replay_id: UUID) -> Any:
    return ReplayRun.objects.filter(pk=replay_id, state=ReplayRun.State.RUNNING)


def _finish(replay_id: UUID, state: str, **fields: Any) -> None:
    """End a run, unless it was cancelled meanwhile."""
    _running(replay_id).update(state=state, finished_at=now(), **fields)


def _evidence(run: ReplayRun) -> list[dict[str, str]]:
    """Return statements over ``proxy_logs`` that show what the replay is compared with."""
    days = f"day BETWEEN '{run.first_day}' AND '{run.last_day}'"
    return [
        {
            "name": "logged-statuses",
            "sql": "SELECT matchedRule, cacheStatus, count(*) AS entries FROM proxy_logs"  # noqa: S608
            f" WHERE {days} GROUP BY ALL ORDER BY ALL",
        },
        {
            "name": "statement-means",
            "sql": "SELECT standardizedSql, floor(avg(warehouseExecutionTimeMs)) AS meanMs FROM proxy_logs"  # noqa: S608
            " WHERE cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH') AND warehouseExecutionTimeMs >= 0"
            f" AND {days} GROUP BY ALL ORDER BY ALL",
        },
    ]


def cancel_replay(*, tenant_id: UUID, replay_id: UUID) -> bool:
    """Cancel a run that has not ended, or remove one that has. Return True if it was cancelled.

    Raises:
        ReplayNotFound: there is no such run.
    """
    runs = ReplayRun.objects.filter(tenant_id=tenant_id, pk=replay_id)
    if runs.exclude(state__in=ReplayRun.FINISHED).update(state=ReplayRun.State.CANCELLED, finished_at=now()):
        return True
    if not runs.delete()[0]:
        raise ReplayNotFound
    return False


def read_replay(*, tenant_id: UUID, replay_id: UUID) -> ReplayRun:
    """Return a run.

    Raises:
        ReplayNotFound: there is no such run.
    """
    run = ReplayRun.objects.filter(tenant_id=tenant_id, pk=replay_id).first()
    if run is None:
        raise ReplayNotFound
    return run


def list_replays(*, tenant_id: UUID) -> QuerySet[ReplayRun]:
    """Return a tenant's runs, newest first, without their results."""
    return ReplayRun.objects.filter(tenant_id=tenant_id).defer("result", "rules")


def fail_lost_replays() -> None:
    """Mark runs as failed whose worker is gone. It held a lock, which ended with it."""
    running = ReplayRun.objects.filter(state=ReplayRun.State.RUNNING).order_by()
    for tenant_id in set(running.values_list("tenant_id", flat=True)):
        with suppress(Busy), build_lock(tenant=tenant_id, period="replay", wait=False):
            _fail_lost(tenant_id)


def _fail_lost(tenant_id: UUID) -> None:
    """Mark the running replays of a tenant as failed. The caller holds the lock, so none is running."""
    ReplayRun.objects.filter(tenant_id=tenant_id, state=ReplayRun.State.RUNNING).update(
        state=ReplayRun.State.FAILED, finished_at=now(), error=_LOST
    )


def find_queued_tenants() -> list[UUID]:
    """Return the tenants that have queued replays."""
    queued = ReplayRun.objects.filter(state=ReplayRun.State.QUEUED).order_by()
    return list(set(queued.values_list("tenant_id", flat=True)))


def delete_old_replays() -> None:
    """Delete finished runs after their lifetime, and all but the newest of each tenant."""
    finished = ReplayRun.objects.filter(state__in=ReplayRun.FINISHED)
    finished.filter(requested_at__lt=now() - _LIFETIME).delete()
    for tenant_id in set(finished.order_by().values_list("tenant_id", flat=True)):
        kept = finished.filter(tenant_id=tenant_id).values_list("pk", flat=True)[:_KEPT]
        finished.filter(tenant_id=tenant_id).exclude(pk__in=list(kept)).delete()


def replay_etag(run: ReplayRun) -> str:
    """Return the entity tag of a run."""
    return strong_etag("replay", run.pk, f"{run.state}-{run.progress}-{run.finished_at}")


def replay_as_json(run: ReplayRun) -> dict[str, Any]:
    """Return a run with its result, if it has one."""
    return {**summarize_replay(run), **(run.result or {})}


def summarize_replay(run: ReplayRun) -> dict[str, Any]:
    """Return a run without its result."""
    return {
        "replayId": str(run.pk),
        "tenantId": str(run.tenant_id),
        "state": run.state,
        "progress": run.progress,
        "subject": run.subject,
        "window": {
            "from": run.first_day.isoformat(),
            "to": run.last_day.isoformat(),
            "warmupDays": run.warmup_days,
        },
        "requestedBy": run.requested_by,
        "requestedAt": format_timestamp(run.requested_at),
        "startedAt": None if run.started_at is None else format_timestamp(run.started_at),
        "finishedAt": None if run.finished_at is None else format_timestamp(run.finished_at),
        "error": run.error or None,
    }
