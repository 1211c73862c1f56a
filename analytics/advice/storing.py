"""Store what a search found: the recommendations, and a replay of the rules with each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import transaction

from accounts.events import SYSTEM
from accounts.tenants.listing import require_live_tenant
from analytics.advice.recommendations import State
from analytics.models import Mining, Recommendation, ReplayRun
from analytics.replay.evidence import replay_evidence
from analytics.replay.runs import subject_of_rules
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from analytics.advice.mine import Advice, Replayed
    from analytics.replay.inputs import Input


def store_advice(advice: Advice, *, collected: Input, seq: int, digest: str) -> None:
    """Replace the open recommendations by what was found.

    One that is found again keeps its id. One that is not found any more is superseded. Replays that no
    recommendation needs any more are deleted.

    Args:
        collected: the input of the search. ``digest`` is of all that the search depends on.
        seq: the revision of the rules.

    Raises:
        TenantNotFound: the tenant was deleted.
    """
    request = collected.request
    tenant_id = request.tenant_id
    window = {"from": request.first_day.isoformat(), "to": request.last_day.isoformat()}
    with transaction.atomic():
        _finish(tenant_id, {"basedOn": {"seq": seq, "window": window}, **advice.report}, digest=digest)
        undecided = _lock_undecided(tenant_id)
        unneeded = {found.replay_id for found in undecided.values() if found.replay_id is not None}
        for rank, (content, replayed) in enumerate(zip(advice.recommendations, advice.replays, strict=True)):
            found = undecided.pop(content["fingerprint"], None) or Recommendation(tenant_id=tenant_id)
            found.first_day, found.last_day = request.first_day, request.last_day
            found.rank, found.seq, found.replay = rank, seq, _save_replay(collected, replayed)
            unneeded.discard(found.replay.pk)
            _write(found, content)
        _supersede(undecided)
        for found in undecided.values():
            if found.state != State.OPEN and found.replay_id is not None:
                unneeded.discard(found.replay_id)
        ReplayRun.objects.filter(pk__in=unneeded, requested_by=SYSTEM).delete()


def store_nothing(tenant_id: UUID, *, seq: int) -> None:
    """Supersede the open recommendations of a tenant without a log.

    Raises:
        TenantNotFound: the tenant was deleted.
    """
    with transaction.atomic():
        _finish(tenant_id, {"basedOn": {"seq": seq, "window": None}, "notProposed": []}, digest="")
        _supersede(_lock_undecided(tenant_id))


def _finish(tenant_id: UUID, report: Mapping[str, Any], *, digest: str) -> None:
    mining = Mining.objects.select_for_update().filter(pk=tenant_id)
    require_live_tenant(tenant_id)
    mining.update(
        state=Mining.State.DONE, progress=1, finished_at=now(), error="", digest=digest, report=report
    )


def _lock_undecided(tenant_id: UUID) -> dict[str, Recommendation]:
    """Return the undecided recommendations by fingerprint."""
    undecided = Recommendation.objects.select_for_update().filter(
        tenant_id=tenant_id, state__in=Recommendation.UNDECIDED
    )
    return {found.fingerprint: found for found in undecided}


def _supersede(undecided: Mapping[str, Recommendation]) -> None:
    for found in undecided.values():
        if found.state == State.OPEN:
            Recommendation.objects.filter(pk=found.pk).update(
                state=State.SUPERSEDED, version=found.version + 1
            )


def _save_replay(collected: Input, replayed: Replayed) -> ReplayRun:
    """Store the replay of the rules with a recommendation. It is the one that a request for it would make."""
    own = replace(collected, request=replace(collected.request, rules=replayed.rules))
    subject, request, moment = subject_of_rules(replayed.rules), own.request, now()
    evidence = replay_evidence(request.first_day, request.last_day)
    done = {
        "state": ReplayRun.State.DONE,
        "progress": 1,
        "error": "",
        "finished_at": moment,
        "result": {**replayed.result, "evidence": evidence},
    }
    run, _ = ReplayRun.objects.update_or_create(
        tenant_id=request.tenant_id,
        digest=own.digest(),
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


def _write(found: Recommendation, content: Mapping[str, Any]) -> None:
    for name, value in content.items():
        setattr(found, name, value)
    found.mined_at = now()
    found.version += 1
    found.save()
