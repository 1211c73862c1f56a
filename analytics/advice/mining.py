"""Search for recommendations, nightly and on demand. Contract: docs/advice.md."""

from __future__ import annotations

import hashlib
import logging
import threading
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import duckdb
import orjson
from django.conf import settings
from django.db import transaction

from accounts.limits import count_use
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from analytics.advice.mine import mine
from analytics.advice.recommendations import State, settle_drafts
from analytics.models import Mining, Recommendation
from analytics.replay.errors import ReplayEnded
from analytics.replay.inputs import Input, Request, collect_input
from analytics.summaries.engine import new_engine
from logs.locks import Busy, build_lock
from logs.models import Partition
from rules.ruleset import read_ruleset
from tenantadmin.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date
    from uuid import UUID

    from analytics.advice.mine import Advice
    from tenantadmin.objectstore import ObjectStore

logger = logging.getLogger(__name__)

#: The days that are looked at, at most, with one more before them to fill the cache.
DAYS: Final = 14
_WARMUP_DAYS: Final = 1
_LOCK: Final = "recommendations"
_UNDER_WAY: Final = (Mining.State.QUEUED, Mining.State.RUNNING)
#: Raise it when the same log would give other recommendations.
_VERSION: Final = 1


def request_mining(*, tenant_id: UUID, actor: str) -> Mining:
    """Queue a search, unless one waits or runs. The caller starts the task.

    Raises:
        TenantNotFound: there is no such live tenant.
        RateLimited: the tenant has started too many searches.
    """
    require_live_tenant(tenant_id)
    if not Mining.objects.filter(pk=tenant_id, state__in=_UNDER_WAY).exists():
        count_use(limit=settings.REPLAY_LIMIT, kind="recommendations", key=str(tenant_id))
    return queue_mining(tenant_id=tenant_id, actor=actor)


def queue_mining(*, tenant_id: UUID, actor: str) -> Mining:
    """As `request_mining`, for the service itself: without a limit."""
    with transaction.atomic():
        mining, _ = Mining.objects.select_for_update().get_or_create(
            tenant_id=tenant_id, defaults={"state": Mining.State.DONE, "requested_by": actor}
        )
        if mining.state not in _UNDER_WAY:
            mining.state, mining.progress, mining.error = Mining.State.QUEUED, 0, ""
            mining.requested_by, mining.requested_at, mining.finished_at = actor, now(), None
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
        found = Mining.objects.filter(pk=tenant_id, state__in=_UNDER_WAY)
        if not found.update(state=Mining.State.RUNNING, progress=0):
            return None
        try:
            _search(store, tenant_id)
        except TenantNotFound:
            found.delete()
            return None
        except ReplayEnded as error:
            found.update(state=Mining.State.FAILED, finished_at=now(), error=str(error))
        except Exception as error:
            message = "The search failed. Request it again."
            found.update(state=Mining.State.FAILED, finished_at=now(), error=message)
            logger.exception("The search for tenant %s failed: %s", tenant_id, error)  # noqa: TRY401
    return Mining.objects.filter(pk=tenant_id).first()


def find_tenants_to_mine() -> list[UUID]:
    """Return the tenants with logs of the last days."""
    since = now().date() - timedelta(days=DAYS)
    recent = Partition.objects.filter(day__gte=since).exclude(file="").order_by()
    return sorted(set(recent.values_list("tenant_id", flat=True)))


def find_waiting_tenants() -> list[UUID]:
    """Return the tenants whose search waits, or was killed."""
    waiting = []
    for mining in Mining.objects.filter(state__in=_UNDER_WAY):
        with suppress(Busy), build_lock(tenant=mining.pk, period=_LOCK, wait=False):
            waiting.append(mining.pk)
    return waiting


def _search(store: ObjectStore, tenant_id: UUID) -> None:
    """Search, and store what was found, unless the input is that of the last search.

    Raises:
        TenantNotFound: the tenant was deleted.
        ReplayEnded: the search takes too long.
    """
    settle_drafts(tenant_id)
    ruleset = read_ruleset(tenant_id)
    days = _choose_days(tenant_id)
    dismissed = _find_dismissed(tenant_id)
    if days is None:
        _store(tenant_id, None, seq=ruleset.seq, days=None, digest="")
        return
    collected = collect_input(Request(tenant_id, ruleset.rules, *days, _WARMUP_DAYS, {}))
    digest = _digest(collected, ruleset.seq, dismissed)
    if Mining.objects.filter(pk=tenant_id, digest=digest).exists():
        Mining.objects.filter(pk=tenant_id).update(state=Mining.State.DONE, progress=1, finished_at=now())
        return

    def report(progress: float) -> None:
        require_live_tenant(tenant_id)
        Mining.objects.filter(pk=tenant_id).update(progress=progress)

    limit = f"{settings.REPLAY_MEMORY_BYTES}B"
    with (
        new_engine(store, memory_limit=limit, threads=settings.REPLAY_THREADS) as engine,
        _limited(engine.connection),
    ):
        advice = mine(
            engine.connection,
            collected.as_job(store),
            collected.current,
            dismissed={fingerprint: estimate for fingerprint, _, estimate in dismissed},
            report=report,
        )
    _store(tenant_id, advice, seq=ruleset.seq, days=days, digest=digest)


def _choose_days(tenant_id: UUID) -> tuple[date, date] | None:
    """Return the first and the last day to look at; None without data. They are below the cap of rows."""
    partitions = Partition.objects.filter(tenant_id=tenant_id).exclude(file="").order_by("-day")
    found = list(partitions.values_list("day", "rows")[: DAYS + _WARMUP_DAYS])
    if not found:
        return None
    last = first = found[0][0]
    rows = 0
    for day, count in found:
        rows += count
        if (last - day).days >= DAYS or rows > settings.REPLAY_MAX_ROWS:
            break
        first = day
    return first, last


def _find_dismissed(tenant_id: UUID) -> list[tuple[str, str, int]]:
    """Return the recommendations that stay dismissed: fingerprint, day of return, estimate in ms."""
    newest = Recommendation.objects.filter(tenant_id=tenant_id, state=State.DISMISSED).order_by("decided_at")
    today = now().date()
    return sorted(
        {
            found.fingerprint: (found.fingerprint, str(found.until or ""), found.estimate_ms)
            for found in newest
            if found.until is None or found.until > today
        }.values()
    )


def _digest(collected: Input, seq: int, dismissed: Sequence[tuple[str, str, int]]) -> str:
    parts = (_VERSION, collected.digest(), seq, dismissed)
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


@contextmanager
def _limited(engine: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """End a search that takes longer than four replays may.

    Raises:
        ReplayEnded: it does.
    """
    seconds = 4 * settings.REPLAY_TIMEOUT_SECONDS
    timer = threading.Timer(seconds, engine.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    except duckdb.InterruptException:
        raise ReplayEnded(f"The search took more than {seconds:g} seconds.") from None
    finally:
        timer.cancel()


def _store(
    tenant_id: UUID, advice: Advice | None, *, seq: int, days: tuple[date, date] | None, digest: str
) -> None:
    """Replace the open recommendations by what was found.

    One that is found again keeps its id. One that is not found any more is superseded.
    """
    window = days and {"from": days[0].isoformat(), "to": days[1].isoformat()}
    report = {"basedOn": {"seq": seq, "window": window}, **(advice.report if advice else {"notProposed": []})}
    with transaction.atomic():
        mining = Mining.objects.select_for_update().filter(pk=tenant_id)
        require_live_tenant(tenant_id)
        mining.update(
            state=Mining.State.DONE, progress=1, finished_at=now(), error="", digest=digest, report=report
        )
        undecided = {
            found.fingerprint: found
            for found in Recommendation.objects.select_for_update().filter(
                tenant_id=tenant_id, state__in=Recommendation.UNDECIDED
            )
        }
        for rank, content in enumerate(advice.recommendations if advice and days else ()):
            found = undecided.pop(content["fingerprint"], None)
            _write(found or Recommendation(tenant_id=tenant_id), content, rank=rank, seq=seq, days=days)
        for found in undecided.values():
            if found.state == State.OPEN:
                Recommendation.objects.filter(pk=found.pk).update(
                    state=State.SUPERSEDED, version=found.version + 1
                )


def _write(
    found: Recommendation,
    content: Mapping[str, Any],
    *,
    rank: int,
    seq: int,
    days: tuple[date, date] | None,
) -> None:
    assert days is not None  # noqa: S101 - for mypy
    for name, value in content.items():
        setattr(found, name, value)
    found.rank, found.seq, (found.first_day, found.last_day) = rank, seq, days
    found.mined_at = now()
    found.version += 1
    found.save()


def read_mining(*, tenant_id: UUID) -> Mining | None:
    """Return the last search of a tenant, or None if there was none."""
    return Mining.objects.filter(pk=tenant_id).first()
