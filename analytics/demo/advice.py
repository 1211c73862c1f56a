"""The demo's decided recommendations. Predictions come from the logs before the day of the decision."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

import duckdb

from analytics.advice.edits import Insert, Replace, apply_edits
from analytics.advice.evidence import rule_evidence, statements_evidence
from analytics.advice.measure import Measurer
from analytics.advice.proposal import Kind, Proposal
from analytics.models import Recommendation
from analytics.replay.job import DayFile, Job
from logs.compaction.build import compact_day
from logs.layout import day_start_ms
from logs.listing import UnlistedDay
from rules.language import complete_rule, read_rules
from tenantadmin.lib.core.timestamps import from_epoch_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from analytics.advice.edits import Edit
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
    by_day: dict[int, list[DecidedAdvice]] = defaultdict(list)
    for advised in plan.profile.advice:
        day = advised.decided // _DAY_MINUTES
        if day < plan.days and advised_id(plan.tenant_id, advised) not in stored:
            by_day[day].append(advised)
    for day, day_advice in by_day.items():
        decided_on = plan.first_day + timedelta(days=day)
        Recommendation.objects.bulk_create(_make(store, plan, decided_on, day_advice, actor=actor))


def _make(
    store: ObjectStore, plan: LogPlan, decided_on: date, day_advice: Sequence[DecidedAdvice], *, actor: str
) -> list[Recommendation]:
    """Return the recommendations of a day. All are based on the rules at the beginning of the day."""
    morning = day_start_ms(decided_on)
    # The first day only fills the cache.
    days = [decided_on - timedelta(days=number) for number in range(_DAYS + 1, 0, -1)]
    before = [item for item in plan.publications if item.at < morning][-1]
    rules = [complete_rule(rule) for rule in before.rules]
    window = f"day BETWEEN '{days[1]}' AND '{days[-1]}'"
    proposals = [_propose(advised, rules, window=window) for advised in day_advice]
    with TemporaryDirectory() as directory, duckdb.connect(config={"threads": 1}) as connection:
        current = read_rules(rules)
        files = [_compact(store, plan.tenant_id, day, Path(directory)) for day in days]
        measurer = Measurer(connection, Job(files, days[1], days[-1], current, current))
        measurer.play_current()
        predictions = [
            measurer.predict(read_rules(apply_edits(rules, proposal.edits))) for proposal in proposals
        ]
        evidence = [
            [
                {"name": item.name, "sql": item.sql, "rows": measurer.query(item.sql)}
                for item in proposal.evidence
            ]
            for proposal in proposals
        ]
    return [
        Recommendation(
            recommendation_id=advised_id(plan.tenant_id, advised),
            tenant_id=plan.tenant_id,
            state=advised.state,
            version=2,
            kind=advised.kind,
            fingerprint=proposal.fingerprint,
            rank=rank,
            title=advised.title,
            why=advised.why,
            rules=[complete_rule(advised.rule)],
            patch=[edit.as_json() for edit in proposal.edits],
            evidence=rows,
            predicted=prediction.predicted,
            estimate_ms=_middle(prediction.predicted["gain"]["savedMs"]),
            seq=before.seq,
            first_day=days[1],
            last_day=days[-1],
            mined_at=from_epoch_ms(morning),
            decided_by=actor,
            decided_at=from_epoch_ms(advised.decided_at(plan.first_day)),
            reason=advised.reason,
            accepted_seq=before.seq + 1 if advised.state == "accepted" else None,
        )
        for rank, (advised, proposal, prediction, rows) in enumerate(
            zip(day_advice, proposals, predictions, evidence, strict=True)
        )
    ]


def _propose(advised: DecidedAdvice, rules: Sequence[Mapping[str, Any]], *, window: str) -> Proposal:
    rule: dict[str, Any] = complete_rule(advised.rule)
    edit: Edit
    if rule["id"] in {other["id"] for other in rules}:
        edit, evidence = Replace(rule), rule_evidence(window, rule["id"])
    else:
        where = "cacheStatus = 'PASSTHROUGH'"
        edit, evidence = Insert(rule), statements_evidence(window, rule["conditions"], where=where)
    return Proposal(Kind(advised.kind), advised.subject, advised.title, advised.why, (edit,), (evidence,))


def _compact(store: ObjectStore, tenant_id: UUID, day: date, directory: Path) -> DayFile:
    place = directory / f"day={day}"
    place.mkdir()
    return DayFile(day, str(compact_day(store, UnlistedDay(tenant_id, day), directory=place).file))


def _middle(bounds: Mapping[str, int]) -> int:
    return (bounds["low"] + bounds["high"]) // 2
