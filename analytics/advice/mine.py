"""Find what to recommend.

The log is loaded once. The current rules are replayed, and then the rules with each proposal that is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from analytics.advice.edits import Insert, Replace, apply_edits
from analytics.advice.kinds import bypass, cache, invalidator, leaks, order, swr, ttl
from analytics.advice.measure import Measurer
from analytics.advice.proposal import Current, Proposal
from analytics.advice.refusals import find_refusals
from analytics.advice.requests import load_statements
from logs.layout import day_start_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import Job

#: The most proposals that are kept. Each is replayed.
MAX_PROPOSALS: Final = 6


@dataclass(frozen=True, slots=True)
class RulesetReplay:
    """The ruleset with a recommendation, and the result of its replay."""

    rules: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Advice:
    """The result of mining.

    Attributes:
        report: the input, and the requests without a proposal, by reason: JSON.
        recommendations: JSON; the repairs first, then the others by their estimate.
        replays: the replay of each recommendation, in the same order.
    """

    report: Mapping[str, Any]
    recommendations: Sequence[Mapping[str, Any]]
    replays: Sequence[RulesetReplay]


def mine(
    connection: DuckDBPyConnection,
    job: Job,
    documents: Sequence[Mapping[str, Any]],
    *,
    dismissed: Mapping[str, int],
    report: Callable[[float], None] = lambda _: None,
) -> Advice:
    """Return proposals for the current ruleset of a job.

    Args:
        connection: a DuckDB of the caller alone; temporary tables are left in it.
        documents: the current rules as they are stored.
        dismissed: the estimates (ms saved) of dismissed recommendations, by fingerprint. A recommendation
            comes back when it would save twice as much.
        report: called with the progress, 0 to 1. It may raise an exception to end the mining.
    """
    measurer = Measurer(connection, job)
    report(0.2)
    outcome = measurer.play_current()
    report(0.4)
    requests = load_statements(
        connection, outcome, gateway=measurer.gateway, counted_from=day_start_ms(job.first_day)
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
    )
    cached = cache.mine(current)
    proposals = [
        *leaks.propose(current),
        *invalidator.propose(current),
        *sorted(
            (*cached.proposals, *ttl.propose(current), *swr.propose(current)),
            key=lambda proposal: -proposal.estimate,
        ),
        *order.propose(current),
        *bypass.propose(current),
    ]
    report(0.6)
    refused = find_refusals(current, cached.options, proposed=cached.covered)
    chosen = _choose([proposal for proposal in proposals if _is_wanted(proposal, dismissed)])
    recommendations, replays = [], []
    for number, proposal in enumerate(chosen, start=1):
        prediction = measurer.predict(current.after(proposal.edits))
        recommendations.append(as_json(measurer, proposal, prediction.predicted))
        replays.append(RulesetReplay(apply_edits(documents, proposal.edits), prediction.replay))
        report(0.6 + 0.4 * number / len(chosen))
    return Advice(
        {
            "rows": measurer.input["rows"],
            "gateway": measurer.input["gateway"],
            "calibration": measurer.calibration,
            "caveats": measurer.caveats,
            "warehouseMs": current.warehouse_ms,
            "considered": cached.considered,
            "notProposed": refused,
        },
        recommendations,
        replays,
    )


def _is_wanted(proposal: Proposal, dismissed: Mapping[str, int]) -> bool:
    before = dismissed.get(proposal.fingerprint)
    return before is None or proposal.estimate >= 2 * max(before, 1)


def _choose(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Keep at most `MAX_PROPOSALS`, in order: the first of each kind, then the first of the rest."""
    kinds = [proposal.kind for proposal in proposals]
    numbers = sorted(range(len(proposals)), key=lambda number: (kinds[number] in kinds[:number], number))
    return [proposals[number] for number in sorted(numbers[:MAX_PROPOSALS])]


def as_json(measurer: Measurer, proposal: Proposal, predicted: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recommendation with the rows of its evidence. The keys are the fields of its model."""
    return {
        "kind": proposal.kind.value,
        "fingerprint": proposal.fingerprint,
        "title": proposal.title,
        "why": list(proposal.why),
        "rules": [dict(edit.rule) for edit in proposal.edits if isinstance(edit, Insert | Replace)],
        "patch": [edit.as_json() for edit in proposal.edits],
        "evidence": [
            {"name": evidence.name, "sql": evidence.sql, "rows": measurer.query(evidence.sql)}
            for evidence in proposal.evidence
        ],
        "predicted": predicted,
        "estimate_ms": proposal.estimate,
    }
