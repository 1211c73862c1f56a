"""The demo's decided recommendations. Predictions come from the logs before the day of the decision."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

import duckdb

from analytics.advice.measure import Measurer
from analytics.advice.mine import fields_of
from analytics.advice.proposal import (
    Kind,
    Proposal,
    RuleEdit,
    apply_edits,
    rule_evidence,
    statements_evidence,
)
from analytics.demo.writer import compact_days
from analytics.models import Recommendation
from analytics.replay.load import Job
from logs.definitions import PASSED
from logs.layout import day_start_ms
from rules.language import complete_rule, read_rules
from tenantadmin.lib.core.timestamps import from_epoch_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.demo.profile import DecidedAdvice
    from analytics.demo.writer import LogPlan
    from tenantadmin.lib.objectstore import ObjectStore

#: Length in days of the window that a recommendation is based on.
_DAYS: Final = 7
_DAY_MINUTES: Final = 1440


def advised_id(tenant_id: UUID, advised: DecidedAdvice) -> UUID:
    """Return the id of a recommendation. It is the same in every run."""
    return uuid5(tenant_id, f"{advised.kind} {advised.subject}")


def advised_summary(tenant_id: UUID, advised: DecidedAdvice) -> dict[str, Any]:
    """Return the summary of the revision that accepts a recommendation."""
    return {
        "recommendation": {"recommendationId": str(advised_id(tenant_id, advised)), "title": advised.title}
    }


def ensure_advice(store: ObjectStore, plan: LogPlan, *, actor: str) -> None:
    """Store the missing recommendations of a tenant, decided by ``actor``. Its logs must be written.

    Raises:
        StoreError: the store failed.
    """
    stored = Recommendation.objects.filter(tenant_id=plan.tenant_id).values_list("pk", flat=True)
    for advised in plan.profile.advice:
        if advised.decided < plan.days * _DAY_MINUTES and advised_id(plan.tenant_id, advised) not in stored:
            _make(store, plan, advised, actor=actor).save(force_insert=True)


def _make(store: ObjectStore, plan: LogPlan, advised: DecidedAdvice, *, actor: str) -> Recommendation:
    """Return a recommendation that is based on the rules at the beginning of the day of its decision."""
    decided_on = plan.first_day + timedelta(minutes=advised.decided)
    # The first day only fills the cache.
    days = [decided_on - timedelta(days=number) for number in range(_DAYS + 1, 0, -1)]
    morning = day_start_ms(decided_on)
    before = [item for item in plan.publications if item.at < morning][-1]
    rules = [complete_rule(rule) for rule in before.rules]
    proposal = _propose(advised, rules, window=f"day BETWEEN '{days[1]}' AND '{days[-1]}'")
    with TemporaryDirectory() as directory, duckdb.connect(config={"threads": 1}) as connection:
        current = read_rules(rules)
        files = compact_days(store, plan.tenant_id, days, directory=Path(directory))
        measurer = Measurer(connection, Job(files, days[1], days[-1], current, current))
        measurer.play_current()
        prediction, _ = measurer.predict(read_rules(apply_edits(rules, proposal.edits)))
        content = fields_of(measurer, proposal, prediction)
    saved_ms = prediction.gain.saved_ms
    return Recommendation(
        **content | {"estimate_ms": (saved_ms.low + saved_ms.high) // 2},
        recommendation_id=advised_id(plan.tenant_id, advised),
        tenant_id=plan.tenant_id,
        state=advised.state,
        version=2,
        rank=0,
        seq=before.seq,
        first_day=days[1],
        last_day=days[-1],
        mined_at=from_epoch_ms(morning),
        decided_by=actor,
        decided_at=from_epoch_ms(advised.decided_at(plan.first_day)),
        reason=advised.reason,
        accepted_seq=before.seq + 1 if advised.state == "accepted" else None,
    )


def _propose(advised: DecidedAdvice, rules: Sequence[Mapping[str, Any]], *, window: str) -> Proposal:
    rule: dict[str, Any] = complete_rule(advised.rule)
    if rule["id"] in {other["id"] for other in rules}:
        edit, evidence = RuleEdit.replace(rule), rule_evidence(window, rule["id"])
    else:
        evidence = statements_evidence(window, rule["conditions"], where=str(PASSED))
        edit = RuleEdit.insert(rule)
    return Proposal(Kind(advised.kind), advised.subject, advised.title, advised.why, (edit,), (evidence,))
