"""Find what to recommend.

The log is loaded once. The current rules are replayed, and then the rules with each proposal that is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from analytics.advice.edits import apply_edits
from analytics.advice.kinds import bypass, cache, invalidator, leaks, order, sleep, swr, ttl
from analytics.advice.kinds.cache import Considered
from analytics.advice.measure import Measurer, Prediction
from analytics.advice.proposal import REPAIRS, Current, Kind, Proposal
from analytics.advice.refusals import NotProposed, find_refusals
from analytics.advice.requests import load_statements
from analytics.replay.calibration import Calibration
from analytics.replay.result import LearnedGateway, ReplayResult, ReplayRows
from logs.layout import day_start_ms
from tenantadmin.lib.core.rendering import make_storable
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import Job
    from rules.tables.warehouse import WarehouseTables

#: The most proposals that are kept. Each is replayed.
MAX_PROPOSALS: Final = 6
#: The most replays of proposals with their other variants.
MAX_REPLAYS: Final = 12


class AdviceReport(JsonStruct):
    """What a search looked at. What is not required is absent if there are no logs."""

    not_proposed: list[NotProposed]
    rows: ReplayRows | None = None
    gateway: LearnedGateway | None = None
    calibration: Calibration | None = None
    caveats: list[str] | None = None
    warehouse_ms: Annotated[
        Count | None, Meta(description="What the warehouse spends under the current rules.")
    ] = None
    considered: Considered | None = None


@dataclass(frozen=True, slots=True)
class RulesetReplay:
    """The ruleset with a recommendation, and the result of its replay."""

    rules: Sequence[Mapping[str, Any]]
    result: ReplayResult


@dataclass(frozen=True, slots=True)
class Advice:
    """The result of mining.

    Attributes:
        recommendations: the fields of their rows; the repairs first, then the others: by the money that they
            save if a price is known, else by their estimate.
        replays: the replay of each recommendation, in the same order; None if it changes no rules.
        left_out: the fingerprints of the proposals that were found and not kept.
    """

    report: AdviceReport
    recommendations: Sequence[Mapping[str, Any]]
    replays: Sequence[RulesetReplay | None]
    left_out: Set[str]


def mine(
    connection: DuckDBPyConnection,
    job: Job,
    documents: Sequence[Mapping[str, Any]],
    *,
    tables: WarehouseTables,
    dismissed: Mapping[str, int],
    report: Callable[[float], None] = lambda _: None,
) -> Advice:
    """Return proposals for the current ruleset of a job.

    Args:
        connection: a DuckDB of the caller alone; temporary tables are left in it.
        documents: the current rules as they are stored.
        tables: what the tenant says of its tables, with the names in its log, as lint has them.
        dismissed: the estimates (ms saved) of dismissed recommendations, by fingerprint. A recommendation
            comes back when it would save twice as much.
        report: called with the progress, 0 to 1. It may raise an exception to end the mining.
    """
    measurer = Measurer(connection, job)
    report(0.2)
    outcome = measurer.play_current()
    report(0.4)
    requests = load_statements(
        connection,
        outcome,
        gateway=measurer.gateway,
        counted_from=day_start_ms(job.first_day),
        warehouse=tables,
    )
    current = Current(
        connection,
        documents,
        job.current,
        outcome.lifetimes,
        requests,
        measurer.risk,
        measurer.warehouse_ms,
        job.first_day,
        job.last_day,
        tables,
    )
    cached = cache.mine(current)
    sleeping, suspending = sleep.propose(current, job, cached)
    subjects = {proposal.subject for proposal in sleeping}
    proposals = [
        *leaks.propose(current),
        *invalidator.propose(current),
        *sleeping,
        *suspending,
        *sorted(
            (
                proposal
                for proposal in (*cached.proposals, *ttl.propose(current), *swr.propose(current))
                if proposal.subject not in subjects
            ),
            key=lambda proposal: -proposal.estimate,
        ),
        *order.propose(current),
        *bypass.propose(current),
    ]
    report(0.6)
    refused = find_refusals(current, cached.options, proposed=cached.covered)
    wanted = [proposal for proposal in proposals if _is_wanted(proposal, dismissed)]
    chosen = _choose(wanted)
    found: list[tuple[_Played, dict[str, Any]]] = []
    for number, proposal in enumerate(chosen, start=1):
        best, others = _compare(measurer, current, proposal)
        alternatives = [(one.proposal, one.prediction) for one in others]
        found.append((best, fields_of(measurer, best.proposal, best.prediction, alternatives)))
        report(0.6 + 0.4 * number / len(chosen))
    found.sort(key=lambda pair: pair[0].rank)
    return Advice(
        AdviceReport(
            not_proposed=refused,
            rows=measurer.input.rows,
            gateway=measurer.input.gateway,
            calibration=measurer.calibration,
            caveats=[
                *measurer.caveats,
                *sorted({caveat for proposal in chosen for caveat in proposal.caveats}),
            ],
            warehouse_ms=current.warehouse_ms,
            considered=cached.considered,
        ),
        [fields for _, fields in found],
        [
            None
            if best.result is None
            else RulesetReplay(apply_edits(documents, best.proposal.edits), best.result)
            for best, _ in found
        ],
        {proposal.fingerprint for proposal in wanted} - {proposal.fingerprint for proposal in chosen},
    )


def _is_wanted(proposal: Proposal, dismissed: Mapping[str, int]) -> bool:
    before = dismissed.get(proposal.fingerprint)
    return before is None or proposal.estimate >= 2 * max(before, 1)


def _choose(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Keep at most `MAX_PROPOSALS` and `MAX_REPLAYS`: the first of each kind, then the first of the rest.

    They stay in order.
    """
    kinds = [proposal.kind for proposal in proposals]
    kept: list[int] = []
    replays = 0
    for number in sorted(range(len(proposals)), key=lambda number: (kinds[number] in kinds[:number], number)):
        needed = sum(bool(one.edits) for one in (proposals[number], *proposals[number].others))
        if len(kept) < MAX_PROPOSALS and replays + needed <= MAX_REPLAYS:
            kept.append(number)
            replays += needed
    return [proposals[number] for number in sorted(kept)]


@dataclass(frozen=True, slots=True)
class _Played:
    """A variant of a proposal with the replay of its ruleset, if it changes the rules."""

    proposal: Proposal
    prediction: Prediction
    result: ReplayResult | None

    @property
    def kept(self) -> tuple[int, int]:
        """What the rules save with it: twice the middle of the ms, then of the hits."""
        total = self.prediction.total
        return total.saved_ms.low + total.saved_ms.high, total.hits.low + total.hits.high

    @property
    def rank(self) -> tuple[bool, Decimal]:
        """Repairs are first, then what the warehouse bills least with, by the middle of the bounds."""
        money = self.prediction.gain.money
        cost = Decimal(0) if money is None else Decimal(money.low) + Decimal(money.high)
        return (False, Decimal(0)) if self.proposal.kind in REPAIRS else (True, cost)


def _compare(measurer: Measurer, current: Current, proposal: Proposal) -> tuple[_Played, Sequence[_Played]]:
    """Replay all variants of a proposal. Return the variant to recommend, and the others.

    Of the cures of a leak it is the one that keeps the most, and of equal ones the first.
    """
    played = [_play(measurer, current, variant) for variant in (proposal, *proposal.others)]
    best = max(played, key=lambda one: one.kept) if proposal.kind is Kind.LEAK_FIX else played[0]
    return best, [one for one in played if one is not best]


def _play(measurer: Measurer, current: Current, proposal: Proposal) -> _Played:
    if proposal.move is not None:
        return _Played(proposal, measurer.predict_moved(proposal.move), None)
    if proposal.suspend is not None:
        return _Played(proposal, measurer.predict_suspend(proposal.suspend), None)
    return _Played(proposal, *measurer.predict(current.after(proposal.edits)))


def fields_of(
    measurer: Measurer,
    proposal: Proposal,
    prediction: Prediction,
    others: Sequence[tuple[Proposal, Prediction]] = (),
) -> dict[str, Any]:
    """Return a recommendation with the rows of its evidence. The keys are the fields of its model."""
    fields: dict[str, Any] = make_storable(
        {
            "kind": proposal.kind,
            "fingerprint": proposal.fingerprint,
            **_change_of(proposal, prediction),
            "caveats": proposal.caveats,
            "alternatives": [_change_of(*other) for other in others],
            "evidence": [measurer.run_evidence(query) for query in proposal.evidence],
            "estimate_ms": proposal.estimate,
        }
    )
    return fields


def _change_of(proposal: Proposal, prediction: Prediction) -> dict[str, Any]:
    return {
        "variant": proposal.variant or "",
        "title": proposal.title,
        "why": proposal.why,
        "rules": [edit.rule for edit in proposal.edits if edit.rule is not None],
        "patch": proposal.edits,
        "predicted": prediction,
    }
