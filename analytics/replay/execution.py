"""Run queued replays in a worker. Contract: docs/replay.md."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts.models import Tenant
from analytics.models import ReplayRun
from analytics.replay.errors import ReplayEnded
from analytics.replay.inputs import Input, Request, collect_input
from analytics.replay.limit import Limit
from analytics.replay.priority import run_at_low_priority
from analytics.replay.replay import replay
from analytics.summaries.engine import replay_engine
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import build_lock

if TYPE_CHECKING:
    from uuid import UUID

    from tenantadmin.lib.objectstore import ObjectStore

logger = logging.getLogger(__name__)

_LOST: Final = "The worker ended before the replay did. Request it again."


def run_next(store: ObjectStore, *, tenant_id: UUID) -> bool:
    """Run the tenant's oldest queued replay, if none is running. Return False if there is nothing to do.

    A run whose worker was killed is marked as failed first.

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
            run_at_low_priority(
                lambda: _execute(store, run),
                # The replay sees this within a second, and ends.
                stop=lambda: _finish(run.pk, ReplayRun.State.CANCELLED),
            )
        return True


def _execute(store: ObjectStore, run: ReplayRun) -> None:
    """Run a replay that is marked as running, and record how it ended."""
    try:
        collected = _collect(run)
        seconds: float = settings.REPLAY_TIMEOUT_SECONDS
        limit = Limit(
            seconds=seconds,
            message=f"The replay took more than {seconds:g} seconds. Choose fewer days.",
            find_reason=partial(_find_reason, run.pk),
        )

        def report(progress: float) -> None:
            limit.check()
            _running(run.pk).update(progress=progress)

        with replay_engine(store) as engine, limit.on(engine.connection):
            result = replay(engine.connection, collected.as_job(store), report=report)
    except ReplayEnded as error:
        _finish(run.pk, ReplayRun.State.FAILED, error=str(error))
    except NotFound:
        _finish(run.pk, ReplayRun.State.CANCELLED, error="The tenant was deleted.")
    except Exception as error:
        _finish(run.pk, ReplayRun.State.FAILED, error="The replay failed. Request it again.")
        logger.exception("Replay %s of tenant %s failed: %s", run.pk, run.tenant_id, error)  # noqa: TRY401
    else:
        _finish(run.pk, ReplayRun.State.DONE, result=collected.as_stored(result), progress=1.0)


def _collect(run: ReplayRun) -> Input:
    """Return the current input of a run. Days may have been rebuilt since the run was queued.

    Raises:
        TenantNotFound: the tenant was deleted.
        ReplayEnded: another run has the same input now.
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


def _find_reason(replay_id: UUID) -> str:
    """Return the reason why a replay must end, or an empty text."""
    run = ReplayRun.objects.filter(pk=replay_id).values_list("tenant_id", "state").first()
    if run is None or run[1] != ReplayRun.State.RUNNING:
        return "The replay was cancelled."
    if not Tenant.objects.live().filter(pk=run[0]).exists():
        return "The tenant was deleted."
    return ""


def _running(replay_id: UUID) -> Any:
    return ReplayRun.objects.filter(pk=replay_id, state=ReplayRun.State.RUNNING)


def _finish(replay_id: UUID, state: str, **fields: Any) -> None:
    """End a run, unless it was cancelled."""
    _running(replay_id).update(state=state, finished_at=now(), **fields)


def _fail_lost(tenant_id: UUID) -> None:
    """Mark the running replays of a tenant as failed. The caller holds the lock, so no worker runs them."""
    ReplayRun.objects.filter(tenant_id=tenant_id, state=ReplayRun.State.RUNNING).update(
        state=ReplayRun.State.FAILED, finished_at=now(), error=_LOST
    )
