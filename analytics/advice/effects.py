"""Measure accepted recommendations daily. Contract: docs/advice.md."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID  # noqa: TC003  # of a struct

import msgspec
from django.conf import settings
from msgspec import Meta

from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.pricing import Pricing
from analytics.advice.documents import AdviceWindow
from analytics.advice.effect import EffectMeasures, measure_effect, measure_suspend
from analytics.advice.errors import WrongState
from analytics.advice.measure import PredictedGain, SuspendChange
from analytics.advice.proposal import Kind
from analytics.advice.recommendations import State, read_recommendation
from analytics.advice.settling import settle_drafts
from analytics.models import Effect, Recommendation
from analytics.replay.errors import ReplayEnded
from analytics.replay.inputs import Input, Request, collect_input
from analytics.replay.job import DayFile, Ruleset
from analytics.replay.limit import Limit
from analytics.replay.priority import run_at_low_priority
from analytics.summaries.engine import replay_engine
from logs.partitions import partitions_with_file
from rules.language import read_rules
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.rendering import make_storable
from tenantadmin.lib.core.structs import Count, one_of
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now
from tenantadmin.lib.database.connections import build_lock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from accounts.models import Revision
    from analytics.replay.job import Job
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


@dataclass(frozen=True, slots=True)
class _Period:
    """The whole days with data after a revision. ``closed_by`` is the number of the next revision, if any."""

    first: date
    last: date
    closed_by: int | None

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1


def find_tenants_to_measure() -> list[UUID]:
    """Return the tenants with accepted or drafted recommendations whose measurement is not complete."""
    recommendations = Recommendation.objects.filter(state__in=[State.ACCEPTED, State.DRAFTED])
    return sorted(
        set(recommendations.exclude(effect__state=Effect.State.CLOSED).values_list("tenant_id", flat=True))
    )


def measure_tenant_effects(store: ObjectStore, *, tenant_id: UUID) -> None:
    """Measure each accepted recommendation of a tenant again if its days or its log changed.

    Raises:
        Busy: another worker measures this tenant.
    """
    with build_lock(tenant=tenant_id, period="effects", wait=False):
        settle_drafts(tenant_id)
        accepted = Recommendation.objects.filter(tenant_id=tenant_id, state=State.ACCEPTED)
        for recommendation in accepted.exclude(effect__state=Effect.State.CLOSED):
            seconds = settings.REPLAY_TIMEOUT_SECONDS
            limit = Limit(seconds=seconds, message=f"The replay took more than {seconds:g} seconds.")
            try:
                run_at_low_priority(partial(_measure, store, recommendation, limit), stop=limit.stop)
            except TenantNotFound:
                return
            except ReplayEnded as error:
                logger.warning("Cannot measure recommendation %s: %s", recommendation.pk, error)


def _measure(store: ObjectStore, recommendation: Recommendation, limit: Limit) -> None:
    if recommendation.kind == Kind.AUTO_SUSPEND:
        _measure_setting(store, recommendation, limit)
        return
    assert recommendation.accepted_seq is not None  # noqa: S101 - the recommendation is accepted
    old, new, following = _read_revisions(recommendation)
    if old is None or new is None:
        return
    period = _find_period(
        recommendation.tenant_id,
        new.changed_at.date(),
        until=None if following is None else following.changed_at.date(),
        closed_by=None if following is None else following.seq,
    )
    is_over = following is not None or period.days >= MAX_DAYS
    if _must_wait(recommendation, period, is_closed=following is not None):
        return
    rules = (old.document or {}).get("rules", [])
    collected = collect_input(
        Request(recommendation.tenant_id, rules, period.first, period.last, _WARMUP_DAYS, {})
    )
    digest = _digest(collected, (new.document or {}).get("rules", []))
    effect = Effect.objects.filter(pk=recommendation.pk).first()
    if effect is not None and effect.digest == digest and not is_over:
        return
    after = read_rules((new.document or {}).get("rules", []))
    job = replace(collected.as_job(store), current=after, in_force=[Ruleset(0, after)])
    result = _compute(store, recommendation, job, period, limit)
    _save(recommendation, period, result, digest=digest, is_over=is_over)


def _measure_setting(store: ObjectStore, recommendation: Recommendation, limit: Limit) -> None:
    """Measure another time until the warehouse suspends: the same log is billed under the former one too."""
    assert recommendation.decided_at is not None  # noqa: S101 - the recommendation is accepted
    change = msgspec.convert(recommendation.predicted["autoSuspend"], SuspendChange)
    ruleset = read_ruleset(recommendation.tenant_id)
    taken = recommendation.decided_at.date()
    later = [
        terms.first
        for terms in Pricing.of(ruleset.prices).terms
        if terms.first > taken and terms.suspend_seconds != change.then
    ]
    period = _find_period(recommendation.tenant_id, taken, until=min(later, default=None), closed_by=None)
    is_closed = bool(later) and later[0] <= now().date()
    if _must_wait(recommendation, period, is_closed=is_closed):
        return
    collected = collect_input(
        Request(recommendation.tenant_id, ruleset.rules, period.first, period.last, _WARMUP_DAYS, {})
    )
    digest = collected.digest()
    is_over = is_closed or period.days >= MAX_DAYS
    effect = Effect.objects.filter(pk=recommendation.pk).first()
    if effect is not None and effect.digest == digest and not is_over:
        return
    with replay_engine(store) as engine, limit.on(engine.connection):
        result = measure_suspend(
            engine.connection,
            collected.as_job(store),
            former=change.now,
            predicted=msgspec.convert(recommendation.predicted["gain"], PredictedGain),
            predicted_days=_days_of(recommendation),
        )
    _save(recommendation, period, result, digest=digest, is_over=is_over)


def _must_wait(recommendation: Recommendation, period: _Period, *, is_closed: bool) -> bool:
    """Return True while there are too few days. ``is_closed``: there will be no more."""
    if period.days >= MIN_DAYS:
        return False
    state = Effect.State.CLOSED if is_closed else Effect.State.WAITING
    Effect.objects.update_or_create(
        pk=recommendation.pk, defaults={"tenant_id": recommendation.tenant_id, "state": state}
    )
    return True


def _save(
    recommendation: Recommendation, period: _Period, result: EffectMeasures, *, digest: str, is_over: bool
) -> None:
    Effect.objects.update_or_create(
        pk=recommendation.pk,
        defaults={
            "tenant_id": recommendation.tenant_id,
            "state": Effect.State.CLOSED if is_over else Effect.State.MEASURING,
            "first_day": period.first,
            "last_day": period.last,
            "digest": digest,
            "measured_at": now(),
            "result": {"closedBy": period.closed_by, **make_storable(result)},
        },
    )


def _read_revisions(recommendation: Recommendation) -> list[Revision | None]:
    """Return three revisions of the rules: before the recommendation, with it, and the next one."""
    seq = recommendation.accepted_seq or 0
    revisions = DocumentHistory(RevisionKind.RULES, recommendation.tenant_id).revisions()
    by_seq = {revision.seq: revision for revision in revisions.filter(seq__gte=seq - 1, seq__lte=seq + 1)}
    return [by_seq.get(number) for number in (seq - 1, seq, seq + 1)]


def _find_period(tenant_id: UUID, taken: date, *, until: date | None, closed_by: int | None) -> _Period:
    """Return the whole days after the day ``taken`` and before the day ``until``."""
    first = taken + timedelta(days=1)
    last = min(now().date() - timedelta(days=1), first + timedelta(days=MAX_DAYS - 1))
    if until is not None:
        last = min(last, until - timedelta(days=1))
    newest = partitions_with_file(tenant=tenant_id).filter(day__lte=last)
    with_data = newest.values_list("day", flat=True).last()
    return _Period(
        first,
        min(last, with_data or first - timedelta(days=1)),
        closed_by,
    )


def _digest(collected: Input, after: Sequence[Any]) -> str:
    return hashlib.sha256(collected.digest().encode() + msgspec.json.encode(after)).hexdigest()


def _compute(
    store: ObjectStore, recommendation: Recommendation, job: Job, period: _Period, limit: Limit
) -> EffectMeasures:
    last_before = period.first - timedelta(
        days=2
    )  # the day of the change counts neither as before nor as after
    first_before = last_before - timedelta(days=period.days - 1)
    partitions = partitions_with_file(tenant=recommendation.tenant_id).filter(
        day__range=(first_before, last_before)
    )
    days_before = list(partitions.defer("hours"))
    files = [DayFile(day.day, store.uri(key)) for day in days_before for key in day.files]
    with replay_engine(store) as engine, limit.on(engine.connection):
        return measure_effect(
            engine.connection,
            job,
            predicted=msgspec.convert(recommendation.predicted["gain"], PredictedGain),
            predicted_days=_days_of(recommendation),
            before=files if len(days_before) == period.days else (),
            report=lambda _: limit.check(),
        )


def _days_of(recommendation: Recommendation) -> int:
    return (recommendation.last_day - recommendation.first_day).days + 1


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
