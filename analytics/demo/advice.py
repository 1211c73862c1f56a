"""The recommendations that were decided before the demo begins, predicted from its logs as they were then."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

import duckdb
import pyarrow as pa

from analytics.advice.edits import Insert, Replace, apply_edits
from analytics.advice.evidence import rule_evidence, statements_evidence
from analytics.advice.measure import Measurer
from analytics.advice.proposal import Kind, Proposal
from analytics.models import Recommendation
from analytics.replay.job import DayFile, Job
from logs.compaction.convert import SCHEMA
from logs.compaction.engine import HOUR_COLUMN, PREFIX_HOUR_COLUMN
from logs.compaction.writer import write_day
from logs.layout import day_start_ms
from rules.language import complete_rule, read_rules
from tenantadmin.lib.core.timestamps import from_epoch_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from analytics.advice.edits import Edit
    from analytics.demo.generate import Entry
    from analytics.demo.profile import Advised
    from analytics.demo.writer import LogPlan

#: A recommendation was made from so many days before the day of the decision.
_DAYS: Final = 7
_DAY_MINUTES: Final = 1440
_MINUTE_MS: Final = 60_000


def advised_id(tenant_id: UUID, advised: Advised) -> UUID:
    """Return the id of a recommendation. It is always the same, so that another run finds it."""
    return uuid5(tenant_id, f"{advised.kind} {advised.subject}")


def advised_summary(tenant_id: UUID, advised: Advised) -> dict[str, Any]:
    """Return the summary of the revision that accepts a recommendation."""
    return {
        "recommendation": {"recommendationId": str(advised_id(tenant_id, advised)), "title": advised.title}
    }


class DemoAdvice:
    """Makes the decided recommendations of a tenant from the logs that are written."""

    def __init__(self, plan: LogPlan) -> None:
        self._plan = plan
        self._advice = [
            advised for advised in plan.profile.advice if advised.decided < plan.days * _DAY_MINUTES
        ]
        self._rows: dict[int, list[Entry]] = {}
        self._wanted = {offset for advised in self._advice for offset in _days_before(advised)}

    def keep(self, offset: int, rows: list[Entry]) -> None:
        """Keep the entries of a day, if a recommendation is made from them."""
        if offset in self._wanted:
            self._rows[offset] = rows

    def ensure(self, *, actor: str) -> None:
        """Store the recommendations that are missing. ``actor`` decided them."""
        stored = {found.pk for found in Recommendation.objects.filter(tenant_id=self._plan.tenant_id)}
        missing = [one for one in self._advice if advised_id(self._plan.tenant_id, one) not in stored]
        by_day: dict[int, list[Advised]] = defaultdict(list)
        for advised in missing:
            by_day[advised.decided // _DAY_MINUTES].append(advised)
        for together in by_day.values():
            Recommendation.objects.bulk_create(self._make(together, actor=actor))

    def _make(self, together: Sequence[Advised], *, actor: str) -> list[Recommendation]:
        """Return the recommendations of a day. All are made from the rules at its beginning."""
        plan = self._plan
        offsets = _days_before(together[0])
        days = [plan.first_day + timedelta(offset) for offset in offsets]
        morning = day_start_ms(days[-1] + timedelta(days=1))
        before = [one for one in plan.profile.publications(plan.first_day) if one.at < morning][-1]
        rules = [complete_rule(rule) for rule in before.rules]
        window = f"day BETWEEN '{days[1]}' AND '{days[-1]}'"
        proposals = [_propose(advised, rules, window=window) for advised in together]
        with TemporaryDirectory() as directory, duckdb.connect(config={"threads": 1}) as connection:
            current = read_rules(rules)
            files = [
                _write(Path(directory), day, self._rows[offset])
                for day, offset in zip(days, offsets, strict=True)
            ]
            measurer = Measurer(connection, Job(files, days[1], days[-1], current, current))
            measurer.play_current()
            predictions = [
                measurer.predict(read_rules(apply_edits(rules, proposal.edits))) for proposal in proposals
            ]
            evidence = [
                [
                    {"name": one.name, "sql": one.sql, "rows": measurer.query(one.sql)}
                    for one in proposal.evidence
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
                decided_at=from_epoch_ms(day_start_ms(plan.first_day) + advised.decided * _MINUTE_MS),
                reason=advised.reason,
                accepted_seq=before.seq + 1 if advised.state == "accepted" else None,
            )
            for rank, (advised, proposal, prediction, rows) in enumerate(
                zip(together, proposals, predictions, evidence, strict=True)
            )
        ]


def _propose(advised: Advised, rules: Sequence[Mapping[str, Any]], *, window: str) -> Proposal:
    rule: dict[str, Any] = complete_rule(advised.rule)
    edit: Edit
    if rule["id"] in {one["id"] for one in rules}:
        edit, evidence = Replace(rule), rule_evidence(window, rule["id"])
    else:
        where = "cacheStatus = 'PASSTHROUGH'"
        edit, evidence = Insert(rule), statements_evidence(window, rule["conditions"], where=where)
    return Proposal(Kind(advised.kind), advised.subject, advised.title, advised.why, (edit,), (evidence,))


def _days_before(advised: Advised) -> Sequence[int]:
    """Return the days from which it is made, and one before them, as their distances from the first day."""
    last = advised.decided // _DAY_MINUTES
    return range(last - _DAYS - 1, last)


def _write(directory: Path, day: date, rows: Sequence[Mapping[str, Any]]) -> DayFile:
    place = directory / f"day={day}"
    place.mkdir()
    own = {HOUR_COLUMN: 0, PREFIX_HOUR_COLUMN: 0}
    batch = pa.RecordBatch.from_pylist([{**row, **own} for row in rows], SCHEMA)
    write_day([batch], reused=None, target=place / "rows.parquet")
    return DayFile(day, str(place / "rows.parquet"))


def _middle(bounds: Mapping[str, int]) -> int:
    return (bounds["low"] + bounds["high"]) // 2
