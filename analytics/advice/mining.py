"""Search for recommendations, nightly and on demand. Contract: docs/advice.md."""

from __future__ import annotations

import hashlib
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings
from django.db import transaction

from accounts.events import record_event
from accounts.limits import count_use
from accounts.models.events import EventKind
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from analytics.advice.mine import mine
from analytics.advice.recommendations import State
from analytics.advice.settling import settle_drafts, settle_suspends
from analytics.advice.storing import store_advice, store_nothing
from analytics.models import Mining, Recommendation
from analytics.replay.errors import ReplayEnded
from analytics.replay.inputs import Input, Request, collect_input
from analytics.replay.limit import Limit
from analytics.replay.priority import run_at_low_priority
from analytics.summaries.engine import replay_engine
from logs.models import Partition
from logs.partitions import GRACE, partitions_with_file
from rules.ruleset import read_ruleset, with_log
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import build_lock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date
    from uuid import UUID

    from tenantadmin.lib.objectstore import ObjectStore

logger = logging.getLogger(__name__)

#: The most days that a search reads. One more day before them fills the cache.
DAYS: Final = 14
_WARMUP_DAYS: Final = 1
_LOCK: Final = "recommendations"
_MARGIN: Final = timedelta(minutes=1)
_UNDER_WAY: Final = Mining.UNDER_WAY
#: Raise it when the same log and rules give other recommendations.
_VERSION: Final = 8


def request_mining(*, tenant_id: UUID, actor: str) -> Mining:
    """Queue a search, unless one waits or runs.

    Raises:
        TenantNotFound: there is no such live tenant.
        RateLimited: the tenant has started too many searches.
    """
    require_live_tenant(tenant_id)
    with transaction.atomic():
        if not Mining.objects.filter(pk=tenant_id, state__in=_UNDER_WAY).exists():
            count_use(limit=settings.REPLAY_LIMIT, kind="recommendations", key=str(tenant_id))
            record_event(
                EventKind.RECOMMENDATIONS_REQUESTED,
                actor=actor,
                subject=str(tenant_id),
                tenant_id=tenant_id,
            )
        return queue_mining(tenant_id=tenant_id, actor=actor)


def queue_mining(*, tenant_id: UUID, actor: str) -> Mining:
    """Queue a search without checking the rate limit. For scheduled jobs."""
    with transaction.atomic():
        mining, _ = Mining.objects.select_for_update().get_or_create(
            tenant_id=tenant_id, defaults={"state": Mining.State.DONE, "requested_by": actor}
        )
        if mining.state not in _UNDER_WAY:
            mining.state, mining.progress, mining.error = Mining.State.QUEUED, 0, ""
            mining.requested_by, mining.requested_at, mining.finished_at = actor, now(), None
            mining.due_at, mining.attempts = now(), 0
            mining.save()
    return mining


def run_mining(store: ObjectStore, *, tenant_id: UUID) -> Mining | None:
    """Run the queued search of a tenant. Return it, or None if there is nothing to do.

    All recommendations are stored in one transaction, so a killed search leaves nothing behind.

    Raises:
        Busy: another worker searches for this tenant.
    """
    with build_lock(tenant=tenant_id, period=_LOCK, wait=False):
        # The lock is free, so a search that is marked as running was killed. It starts again.
        mining = Mining.objects.filter(pk=tenant_id, state__in=_UNDER_WAY)
        if not mining.update(state=Mining.State.RUNNING, progress=0):
            return None
        seconds = max_seconds()
        limit = Limit(seconds=seconds, message=f"The search took more than {seconds:g} seconds.")
        try:
            run_at_low_priority(lambda: _search(store, tenant_id, limit), stop=limit.stop)
        except TenantNotFound:
            mining.delete()
            return None
        except ReplayEnded as error:
            mining.update(state=Mining.State.FAILED, finished_at=now(), error=str(error))
        except Exception as error:
            message = "The search failed. Request it again."
            mining.update(state=Mining.State.FAILED, finished_at=now(), error=message)
            logger.exception("The search for tenant %s failed: %s", tenant_id, error)  # noqa: TRY401
    return Mining.objects.filter(pk=tenant_id).first()


def max_seconds() -> float:
    """Return the time limit of a search: eight replays, but less than `GRACE`, when its files may be gone."""
    seconds: float = 8 * settings.REPLAY_TIMEOUT_SECONDS
    return min(seconds, (GRACE - _MARGIN).total_seconds())


def find_tenants_to_mine() -> list[UUID]:
    """Return the tenants with logs in the last `DAYS` days."""
    since = now().date() - timedelta(days=DAYS)
    recent = Partition.objects.filter(day__gte=since).exclude(file="").order_by()
    return sorted(set(recent.values_list("tenant_id", flat=True)))


def _search(store: ObjectStore, tenant_id: UUID, limit: Limit) -> None:
    """Search and store the result, unless the input is the same as in the last search.

    Raises:
        TenantNotFound: the tenant was deleted.
        ReplayEnded: the search takes too long, or the worker ends.
    """
    settle_drafts(tenant_id)
    settle_suspends(tenant_id)
    ruleset = read_ruleset(tenant_id)
    days = _choose_days(tenant_id)
    dismissed = _find_dismissed(tenant_id)
    if days is None:
        store_nothing(tenant_id, seq=ruleset.seq)
        return
    collected = collect_input(Request(tenant_id, ruleset.rules, *days, _WARMUP_DAYS, {}))
    digest = _digest(collected, ruleset.seq, dismissed)
    if Mining.objects.filter(pk=tenant_id, digest=digest).exists():
        Mining.objects.filter(pk=tenant_id).update(state=Mining.State.DONE, progress=1, finished_at=now())
        return

    def report(progress: float) -> None:
        limit.check()
        require_live_tenant(tenant_id)
        Mining.objects.filter(pk=tenant_id).update(progress=progress)

    with replay_engine(store) as engine, limit.on(engine.connection):
        advice = mine(
            engine.connection,
            collected.as_job(store),
            collected.current,
            tables=with_log(collected.tables, tenant_id),
            dismissed={fingerprint: estimate for fingerprint, _, estimate in dismissed},
            report=report,
        )
    store_advice(advice, collected=collected, seq=ruleset.seq, digest=digest)


def _choose_days(tenant_id: UUID) -> tuple[date, date] | None:
    """Return the first and the last day to read, at most `REPLAY_MAX_ROWS` rows; None if there is no log."""
    partitions = partitions_with_file(tenant=tenant_id).order_by("-day")
    days = list(partitions.values_list("day", "rows")[: DAYS + _WARMUP_DAYS])
    if not days:
        return None
    last = first = days[0][0]
    rows = 0
    for day, count in days:
        rows += count
        if (last - day).days >= DAYS or rows > settings.REPLAY_MAX_ROWS:
            break
        first = day
    return first, last


def _find_dismissed(tenant_id: UUID) -> list[tuple[str, str, int]]:
    """Return fingerprint, day of return and estimate (ms) of recommendations that stay dismissed."""
    dismissed = Recommendation.objects.filter(tenant_id=tenant_id, state=State.DISMISSED).order_by(
        "decided_at"
    )
    today = now().date()
    return sorted(
        {
            row.fingerprint: (row.fingerprint, str(row.until or ""), row.estimate_ms)
            for row in dismissed
            if row.until is None or row.until > today
        }.values()
    )


def _digest(collected: Input, seq: int, dismissed: Sequence[tuple[str, str, int]]) -> str:
    parts = (_VERSION, collected.digest(), seq, dismissed)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def read_mining(*, tenant_id: UUID) -> Mining | None:
    """Return the last search of a tenant, or None if there was none."""
    return Mining.objects.filter(pk=tenant_id).first()
