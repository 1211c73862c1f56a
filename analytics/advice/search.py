"""Search for recommendations, nightly and on demand, and store them. Contract: docs/advice.md."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec
from django.conf import settings
from django.db import transaction

from accounts.events import SYSTEM
from accounts.models import Tenant
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from analytics.advice.mine import MAX_PROPOSALS, AdviceReport, mine
from analytics.advice.recommend import AdviceWindow, State, choose_variant, settle_suspends
from analytics.models import Mining, Recommendation, ReplayRun
from analytics.numbers.store import replay_engine
from analytics.replay.execution import Input, Limit, ReplayEnded, Request, collect_input, run_at_low_priority
from analytics.replay.runs import name_rules
from logs.models import Partition
from logs.partitions import GRACE, partitions_with_file
from rules.ruleset import read_ruleset, with_log
from tenantadmin.lib.core.rendering import make_storable
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import build_lock

if TYPE_CHECKING:
    from analytics.advice.mine import Advice, RulesetReplay
    from tenantadmin.lib.objectstore import ObjectStore

_LEFT_OUT: Final = f"It was found again, but others came first: a search keeps at most {MAX_PROPOSALS}."


class MiningBase(JsonStruct):
    seq: Count
    window: AdviceWindow | None


class MiningReport(AdviceReport):
    based_on: MiningBase


def store_advice(advice: Advice, *, collected: Input, seq: int, digest: str) -> None:
    """Replace the open recommendations of a tenant.

    A recommendation that is found again keeps its id, also if it was superseded. The others become
    superseded. Replays that no recommendation refers to are deleted.

    Args:
        collected: the input of the search.
        seq: the revision of the rules.
        digest: a digest of everything that the result depends on.

    Raises:
        TenantNotFound: the tenant was deleted.
    """
    request = collected.request
    tenant_id = request.tenant_id
    window = AdviceWindow(from_=request.first_day, to=request.last_day)
    report = MiningReport(
        **msgspec.structs.asdict(advice.report), based_on=MiningBase(seq=seq, window=window)
    )
    with transaction.atomic():
        _finish(tenant_id, report, digest=digest)
        earlier, undecided, moment = _lock_superseded(tenant_id), _lock_undecided(tenant_id), now()
        unneeded = {row.replay_id for row in undecided.values() if row.replay_id is not None}
        for rank, (content, replay) in enumerate(zip(advice.recommendations, advice.replays, strict=True)):
            same = earlier.pop(content["fingerprint"], [])
            row = undecided.pop(content["fingerprint"], None)
            if row is None:
                row = same.pop() if same else Recommendation(tenant_id=tenant_id)
                row.state, row.reason = State.OPEN, ""
            for older in same:
                older.delete()
            row.first_day, row.last_day = request.first_day, request.last_day
            row.rank, row.seq = rank, seq
            row.replay = None if replay is None else _save_replay(collected, replay)
            unneeded.discard(row.replay_id)
            _write(row, content, mined_at=moment)
        _supersede(undecided)
        _describe_left_out(tenant_id, advice.left_out)
        for row in undecided.values():
            if row.state != State.OPEN and row.replay_id is not None:
                unneeded.discard(row.replay_id)
        ReplayRun.objects.filter(pk__in=unneeded, requested_by=SYSTEM).delete()


def store_nothing(tenant_id: UUID, *, seq: int) -> None:
    """Supersede the open recommendations of a tenant without a log.

    Raises:
        TenantNotFound: the tenant was deleted.
    """
    with transaction.atomic():
        report = MiningReport(based_on=MiningBase(seq=seq, window=None), not_proposed=[])
        _finish(tenant_id, report, digest="")
        _supersede(_lock_undecided(tenant_id))


def _finish(tenant_id: UUID, report: MiningReport, *, digest: str) -> None:
    mining = Mining.objects.select_for_update().filter(pk=tenant_id)
    require_live_tenant(tenant_id)
    mining.update(
        state=Mining.State.DONE,
        progress=1,
        finished_at=now(),
        error="",
        digest=digest,
        report=make_storable(report),
    )


def _lock_undecided(tenant_id: UUID) -> dict[str, Recommendation]:
    """Lock the undecided recommendations, and return them by fingerprint."""
    undecided = Recommendation.objects.select_for_update().filter(
        tenant_id=tenant_id, state__in=Recommendation.UNDECIDED
    )
    return {row.fingerprint: row for row in undecided}


def _lock_superseded(tenant_id: UUID) -> dict[str, list[Recommendation]]:
    """Lock the superseded recommendations, and return them by fingerprint, the oldest first."""
    found: dict[str, list[Recommendation]] = {}
    superseded = Recommendation.objects.select_for_update().filter(
        tenant_id=tenant_id, state=State.SUPERSEDED
    )
    for row in superseded.order_by("mined_at", "pk"):
        found.setdefault(row.fingerprint, []).append(row)
    return found


def _describe_left_out(tenant_id: UUID, left_out: Set[str]) -> None:
    """Tell the superseded recommendations that were found from those that were not."""
    superseded = Recommendation.objects.filter(tenant_id=tenant_id, state=State.SUPERSEDED)
    superseded.filter(fingerprint__in=left_out).update(reason=_LEFT_OUT)
    superseded.exclude(fingerprint__in=left_out).update(reason="")


def _supersede(undecided: Mapping[str, Recommendation]) -> None:
    for row in undecided.values():
        if row.state == State.OPEN:
            Recommendation.objects.filter(pk=row.pk).update(state=State.SUPERSEDED, version=row.version + 1)


def _save_replay(collected: Input, replay: RulesetReplay) -> ReplayRun:
    """Store the replay of a recommendation under the digest that a request for the same replay would have."""
    own_input = replace(collected, request=replace(collected.request, rules=replay.rules))
    request, moment = own_input.request, now()
    done = {
        "state": ReplayRun.State.DONE,
        "progress": 1,
        "error": "",
        "finished_at": moment,
        "result": own_input.as_stored(replay.result),
    }
    run, _ = ReplayRun.objects.update_or_create(
        tenant_id=request.tenant_id,
        digest=own_input.digest(),
        defaults=done,
        create_defaults={
            **done,
            "subject": name_rules(replay.rules),
            "rules": replay.rules,
            "first_day": request.first_day,
            "last_day": request.last_day,
            "warmup_days": request.warmup_days,
            "requested_by": SYSTEM,
            "started_at": moment,
        },
    )
    return run


def _write(recommendation: Recommendation, content: Mapping[str, Any], *, mined_at: datetime) -> None:
    drafted = recommendation.variant if recommendation.state == State.DRAFTED else None
    for name, value in content.items():
        setattr(recommendation, name, value)
    if drafted in {one["variant"] for one in recommendation.alternatives}:
        choose_variant(recommendation, drafted)
    recommendation.mined_at = mined_at
    recommendation.version += 1
    recommendation.save()


logger = logging.getLogger(__name__)
#: The most days that a search reads. One more day before them fills the cache.
DAYS: Final = 14
_WARMUP_DAYS: Final = 1
_LOCK: Final = "recommendations"
_MARGIN: Final = timedelta(minutes=1)
#: Raise it when the same log and rules give other recommendations.
_VERSION: Final = 8


def run_mining(store: ObjectStore, *, tenant_id: UUID, wait: bool = False) -> Mining | None:
    """Run the queued search of a tenant. Return it, or None if there is nothing to do.

    All recommendations are stored in one transaction, so a killed search leaves nothing behind.

    Raises:
        Busy: another worker searches for this tenant, and ``wait`` is false.
    """
    with build_lock(tenant=tenant_id, period=_LOCK, wait=wait):
        # The lock is free, so a search that is marked as running was killed. It starts again.
        mining = Mining.objects.filter(pk=tenant_id, state__in=Mining.UNDER_WAY)
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
    recent = recent.exclude(tenant_id__in=Tenant.objects.assessments().values("pk"))
    return sorted(set(recent.values_list("tenant_id", flat=True)))


def _search(store: ObjectStore, tenant_id: UUID, limit: Limit) -> None:
    """Search and store the result, unless the input is the same as in the last search.

    Raises:
        TenantNotFound: the tenant was deleted.
        ReplayEnded: the search takes too long, or the worker ends.
    """
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

    with replay_engine() as engine, limit.on(engine.connection):
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
    """Return the first and the last day to read; None if there is no log."""
    partitions = partitions_with_file(tenant=tenant_id).order_by("-day")
    days = list(partitions.values_list("day", flat=True)[: DAYS + _WARMUP_DAYS])
    if not days:
        return None
    last = days[0]
    return min(day for day in days if (last - day).days < DAYS), last


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
