"""Measure accepted recommendations daily. Contract: docs/advice.md."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from django.conf import settings
from msgspec import Meta

from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.pricing import Pricing
from analytics.advice.combine import combine_edits
from analytics.advice.measure import (
    EffectMeasures,
    PredictedGain,
    measure_effect,
    measure_suspend,
)
from analytics.advice.proposal import Kind, read_edits
from analytics.advice.recommend import AdviceWindow, State, WrongState, read_recommendation, rules_at
from analytics.models import Effect, Recommendation
from analytics.numbers.store import replay_engine
from analytics.replay.execution import (
    Limit,
    ReplayEnded,
    Request,
    collect_input,
    day_files,
    run_at_low_priority,
)
from analytics.replay.load import DayFile, Ruleset
from logs.partitions import partitions_with_file
from rules.language import read_rules
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.rendering import make_storable
from tenantadmin.lib.core.structs import Count, one_of
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now
from tenantadmin.lib.database.connections import build_lock

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from tenantadmin.lib.objectstore import ObjectStore

logger = logging.getLogger(__name__)
#: The least and the greatest number of whole days to measure.
MIN_DAYS: Final = 3
MAX_DAYS: Final = 28
_WARMUP_DAYS: Final = 1


class EffectPeriod(AdviceWindow):
    days: Count


class RecommendationEffect(EffectMeasures):
    recommendation_id: UUID
    state: Annotated[str, one_of(Effect.State.values)]
    measured_at: Timestamp | None
    period: EffectPeriod | None
    closed_by: Annotated[int | None, Meta(description="The revision of the rules that ended it.")]


def find_tenants_to_measure() -> list[UUID]:
    """Return the tenants with accepted recommendations whose measurement is not complete."""
    return sorted(set(_find_unmeasured().values_list("tenant_id", flat=True)))


def _find_unmeasured() -> QuerySet[Recommendation]:
    return Recommendation.objects.filter(state=State.ACCEPTED).exclude(effect__state=Effect.State.CLOSED)


def measure_tenant_effects(store: ObjectStore, *, tenant_id: UUID) -> None:
    """Measure each accepted recommendation of a tenant again if its days or its log changed.

    Raises:
        Busy: another worker measures this tenant.
    """
    with build_lock(tenant=tenant_id, period="effects", wait=False):
        for recommendation in _find_unmeasured().filter(tenant_id=tenant_id):
            seconds = settings.REPLAY_TIMEOUT_SECONDS
            limit = Limit(seconds=seconds, message=f"The replay took more than {seconds:g} seconds.")
            try:
                run_at_low_priority(partial(_measure, store, recommendation, limit), stop=limit.stop)
            except TenantNotFound:
                return
            except ReplayEnded as error:
                logger.warning("Cannot measure recommendation %s: %s", recommendation.pk, error)


@dataclass(frozen=True, slots=True)
class _Change:
    """What an accepted recommendation changed.

    Attributes:
        taken: the day of the change. It counts neither as before nor as after.
        rules: the rules to replay: those before the change, where it changed rules.
        after: the rules with the change; None where it is another time until the warehouse suspends.
        until: the day on which the next change came, or will come.
        closed_by: the revision of the rules that came next.
    """

    taken: date
    rules: Sequence[Any]
    after: Sequence[Any] | None
    until: date | None
    closed_by: int | None = None


def read_rule_change(recommendation: Recommendation) -> _Change | None:
    """Return the change of rules; None if their history does not have it any more."""
    seq = recommendation.accepted_seq
    assert seq is not None  # noqa: S101 - the recommendation is accepted
    revisions = DocumentHistory(RevisionKind.RULES, recommendation.tenant_id).revisions()
    by_seq = {one.seq: one for one in revisions.filter(seq__range=(seq - 1, seq + 1))}
    if seq - 1 not in by_seq or seq not in by_seq:
        return None
    before, after = ((by_seq[number].document or {}).get("rules", []) for number in (seq - 1, seq))
    before = _with_others(recommendation, before)
    until = by_seq[seq + 1].changed_at.date() if seq + 1 in by_seq else None
    return _Change(by_seq[seq].changed_at.date(), before, after, until, seq + 1 if until else None)


def _with_others(recommendation: Recommendation, rules: Sequence[Any]) -> Sequence[Any]:
    """Return the rules of before with the other recommendations of the same revision.

    What is measured is then the effect of this one alone.
    """
    others = Recommendation.objects.filter(
        tenant_id=recommendation.tenant_id, accepted_seq=recommendation.accepted_seq, state=State.ACCEPTED
    ).exclude(pk=recommendation.pk)
    # They may have been made for other rules, and the draft be moved to these.
    if not others or rules_at(recommendation.tenant_id, recommendation.seq) != rules:
        return rules
    return combine_edits(rules, [read_edits(other.patch) for other in others])


def _read_suspend_change(recommendation: Recommendation) -> _Change:
    """Return the change of the time until the warehouse suspends. A later price with another time ends it."""
    assert recommendation.decided_at is not None  # noqa: S101 - the recommendation is accepted
    then = recommendation.predicted["autoSuspend"]["then"]
    ruleset = read_ruleset(recommendation.tenant_id)
    taken = recommendation.decided_at.date()
    later = (
        terms.first
        for terms in Pricing.of(ruleset.prices).terms
        if terms.first > taken and terms.suspend_seconds != then
    )
    return _Change(taken, ruleset.rules, None, min(later, default=None))


def _measure(store: ObjectStore, recommendation: Recommendation, limit: Limit) -> None:
    """Measure a recommendation, unless it has too few days or nothing is new since the last time."""
    is_suspend = recommendation.kind == Kind.AUTO_SUSPEND
    change = (_read_suspend_change if is_suspend else read_rule_change)(recommendation)
    if change is None:
        return
    tenant_id = recommendation.tenant_id
    first, last = _find_period(tenant_id, change)
    days = (last - first).days + 1
    is_closed = change.until is not None and change.until <= now().date()
    if days < MIN_DAYS:
        _save(recommendation, Effect.State.CLOSED if is_closed else Effect.State.WAITING)
        return
    is_over = is_closed or days >= MAX_DAYS
    collected = collect_input(Request(tenant_id, change.rules, first, last, _WARMUP_DAYS, {}))
    digest = hashlib.sha256(collected.digest().encode() + msgspec.json.encode(change.after)).hexdigest()
    if not is_over and Effect.objects.filter(pk=recommendation.pk, digest=digest).exists():
        return
    job = collected.as_job(store)
    predicted = msgspec.convert(recommendation.predicted["gain"], PredictedGain)
    predicted_days = recommendation.days
    with replay_engine() as engine, limit.on(engine.connection):
        if change.after is None:
            result = measure_suspend(
                engine.connection,
                job,
                former=recommendation.predicted["autoSuspend"]["now"],
                predicted=predicted,
                predicted_days=predicted_days,
            )
        else:
            after = read_rules(change.after)
            result = measure_effect(
                engine.connection,
                replace(job, current=after, in_force=[Ruleset(0, after)]),
                predicted=predicted,
                predicted_days=predicted_days,
                before=_find_files(store, tenant_id, before=change.taken, days=days),
                report=lambda _: limit.check(),
            )
    _save(
        recommendation,
        Effect.State.CLOSED if is_over else Effect.State.MEASURING,
        first_day=first,
        last_day=last,
        digest=digest,
        measured_at=now(),
        result={"closedBy": change.closed_by, **make_storable(result)},
    )


def _save(recommendation: Recommendation, state: str, **fields: Any) -> None:
    Effect.objects.update_or_create(
        pk=recommendation.pk, defaults={"tenant_id": recommendation.tenant_id, "state": state, **fields}
    )


def _find_period(tenant_id: UUID, change: _Change) -> tuple[date, date]:
    """Return the whole days with data after a change and before the next one. There may be none."""
    first = change.taken + timedelta(days=1)
    last = min(now().date() - timedelta(days=1), first + timedelta(days=MAX_DAYS - 1))
    if change.until is not None:
        last = min(last, change.until - timedelta(days=1))
    with_data = partitions_with_file(tenant=tenant_id).filter(day__lte=last).values_list("day", flat=True)
    return first, min(last, with_data.last() or change.taken)


def _find_files(store: ObjectStore, tenant_id: UUID, *, before: date, days: int) -> list[DayFile]:
    """Return the files of as many days before a change; none if the log has fewer."""
    window = (before - timedelta(days=days), before - timedelta(days=1))
    found = list(partitions_with_file(tenant=tenant_id).filter(day__range=window).defer("hours"))
    return day_files(store, ((day.day, day.files) for day in found)) if len(found) == days else []


def read_effect(*, tenant_id: UUID, recommendation_id: UUID) -> Effect:
    """Return the effect of an accepted recommendation. Before the first measurement its state is waiting.

    Raises:
        RecommendationNotFound: the tenant has no such recommendation.
        WrongState: it is not accepted.
    """
    recommendation = read_recommendation(tenant_id=tenant_id, recommendation_id=recommendation_id)
    if recommendation.state != State.ACCEPTED:
        raise WrongState(state=recommendation.state, allowed=State.ACCEPTED)
    return Effect.objects.filter(pk=recommendation.pk).first() or Effect(recommendation=recommendation)


def describe_effect(effect: Effect) -> RecommendationEffect:
    period = None
    if effect.first_day is not None and effect.last_day is not None:
        days = (effect.last_day - effect.first_day).days + 1
        period = EffectPeriod(from_=effect.first_day, to=effect.last_day, days=days)
    result = effect.result or {}
    return RecommendationEffect(
        **msgspec.structs.asdict(msgspec.convert(result, EffectMeasures)),
        recommendation_id=effect.pk,
        state=effect.state,
        measured_at=None if effect.measured_at is None else format_timestamp(effect.measured_at),
        period=period,
        closed_by=result.get("closedBy"),
    )
