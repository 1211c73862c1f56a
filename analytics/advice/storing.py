"""Store the result of a search: the recommendations, and the replay of each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.db import transaction

from accounts.events import SYSTEM
from accounts.tenants.listing import require_live_tenant
from analytics.advice.documents import AdviceWindow
from analytics.advice.mine import MAX_PROPOSALS, AdviceReport
from analytics.advice.recommendations import State
from analytics.advice.variants import choose_variant
from analytics.models import Mining, Recommendation, ReplayRun
from analytics.replay.runs import subject_of_rules
from tenantadmin.lib.core.rendering import make_storable
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Set
    from datetime import datetime
    from uuid import UUID

    from analytics.advice.mine import Advice, RulesetReplay
    from analytics.replay.inputs import Input


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
        _say_left_out(tenant_id, advice.left_out)
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


def _say_left_out(tenant_id: UUID, left_out: Set[str]) -> None:
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
    subject, request, moment = subject_of_rules(replay.rules), own_input.request, now()
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
            "subject": subject.name,
            "rules": subject.rules,
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
