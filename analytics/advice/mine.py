"""Find what to recommend, and explain why requests got no recommendation.

The log is loaded once. The current rules are replayed, and then the rules with each proposal that is kept.
"""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from analytics.advice.estimate import NO_RULE, load_statements
from analytics.advice.kinds import sleep
from analytics.advice.kinds.cache import Considered, is_candidate, propose_cache
from analytics.advice.kinds.lifetime import propose_swr, propose_ttl
from analytics.advice.kinds.prune import propose_bypass, propose_order
from analytics.advice.kinds.repair import propose_cures, propose_repairs
from analytics.advice.measure import Measurer, Prediction
from analytics.advice.proposal import REPAIRS, Current, Kind, Proposal, apply_edits
from analytics.advice.words import REASONS
from analytics.replay.result import Calibration, LearnedGateway, ReplayResult, ReplayRows
from analytics.replay.sample import Sample
from logs.definitions import BYPASSED
from logs.layout import day_start_ms
from rules.language import Action
from tenantadmin.lib.core.rendering import make_storable
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.advice.estimate import Statement
    from analytics.advice.kinds.cache import Option
    from analytics.replay.load import Job
    from rules.tables.warehouse import WarehouseTables

_MAX_EXAMPLES: Final = 3
_MAX_WORDS: Final = 10


class NotProposed(JsonStruct):
    """Requests that go to the warehouse, and for which nothing is proposed."""

    code: str
    why: str
    statements: Count
    requests: Count
    warehouse_ms: Count
    examples: Annotated[list[str], Meta(description="The dearest statements.")]
    words: Annotated[
        tuple[str, ...],
        Meta(description="The words on which their results depend, such as `CURRENT_USER`, at most 10."),
    ] = ()


@dataclass(frozen=True, slots=True)
class _Refused:
    """Requests for a statement without a proposal, their warehouse time, and the word that is the reason."""

    statement: str
    requests: int
    ms: int
    word: str | None = None


def find_refusals(
    current: Current, options: Iterable[Option], *, proposed: frozenset[int]
) -> list[NotProposed]:
    """Return, by reason, the requests that go to the warehouse and got no proposal.

    Args:
        proposed: the numbers of the statements that a proposal covers.
    """
    refused: dict[str, list[_Refused]] = {code: [] for code in REASONS}
    unsafe = _find_unsafe(options)
    for series in current.series_of(NO_RULE):
        statement = series.statement
        if statement.number in proposed:
            continue
        code = _find_reason(statement, is_unsafe=statement.number in unsafe)
        word = {"per-user": statement.word, "non-deterministic": statement.time_word}.get(code)
        refused[code].append(_Refused(statement.text, series.answered, series.spent_ms, word))
    refused["decided-not-to-cache"] = [_Refused(*row) for row in _find_decided(current)]
    return [_describe_refusal(code, rows) for code, rows in refused.items() if rows]


def _describe_refusal(code: str, refused: Sequence[_Refused]) -> NotProposed:
    by_statement = Counter[str]()
    for row in refused:
        by_statement[row.statement] += row.ms
    return NotProposed(
        code=code,
        why=REASONS[code],
        statements=len(by_statement),
        requests=sum(row.requests for row in refused),
        warehouse_ms=by_statement.total(),
        examples=sorted(by_statement, key=lambda text: (-by_statement[text], text))[:_MAX_EXAMPLES],
        words=tuple(sorted({row.word for row in refused if row.word})[:_MAX_WORDS]),
    )


def _find_reason(statement: Statement, *, is_unsafe: bool) -> str:
    request = statement.request
    if statement.word:
        return "per-user"
    if request["isReadOnly"] is not True:
        return "not-read-only"
    if request["hasNonDeterministicFunctions"] is not False or statement.time_word:
        return "non-deterministic"
    if not is_candidate(statement):
        return "no-tables"
    return "changes-too-often" if is_unsafe else "too-little-to-save"


def _find_unsafe(options: Iterable[Option]) -> set[int]:
    """Return the statements whose options were refused only because of stale risk."""
    return {
        number
        for option in options
        if not option.saving.is_safe
        for number, saving in option.savings.items()
        if saving.high.hits
    }


def _find_decided(current: Current) -> Sequence[tuple[str, int, int]]:
    rules = [
        index
        for index, rule in enumerate(current.rules)
        if rule.enabled and rule.action in {Action.BYPASS, Action.DENY}
    ]
    return current.connection.execute(
        f"""
        SELECT statement.text,
            coalesce(sum(weight) FILTER ({BYPASSED.of("status")}), 0)::BIGINT, sum(work_ms * weight)::BIGINT
        FROM current JOIN statement USING (statement)
        WHERE is_counted AND NOT is_change AND list_contains($rules::BIGINT[], rule)
        GROUP BY statement.text ORDER BY statement.text
        """,
        {"rules": rules},
    ).fetchall()


#: The most proposals that are kept. Each is replayed.
MAX_PROPOSALS: Final = 6
#: The most replays of proposals with their other variants.
MAX_REPLAYS: Final = 12


class AdviceReport(JsonStruct):
    """What a search looked at. What is not required is absent if there are no logs."""

    not_proposed: list[NotProposed]
    rows: ReplayRows | None = None
    gateway: LearnedGateway | None = None
    sample: Annotated[
        Sample | None, Meta(description="What was read of a large log. Absent if it is all.")
    ] = None
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
    measurer.play_current()
    report(0.4)
    current = read_current(measurer, documents, tables=tables)
    cached = propose_cache(current)
    # Whether the warehouse is awake depends on all requests.
    sleeping, suspending = sleep.propose(current, job, cached) if measurer.is_whole else ([], [])
    subjects = {proposal.subject for proposal in sleeping}
    proposals = [
        *propose_cures(current),
        *propose_repairs(current),
        *sleeping,
        *suspending,
        *sorted(
            (
                proposal
                for proposal in (*cached.proposals, *propose_ttl(current), *propose_swr(current))
                if proposal.subject not in subjects
            ),
            key=lambda proposal: -proposal.estimate,
        ),
        *propose_order(current),
        *propose_bypass(current),
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
            sample=measurer.input.sample,
            calibration=measurer.calibration,
            caveats=[
                *measurer.find_caveats(),
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


def read_current(
    measurer: Measurer, documents: Sequence[Mapping[str, Any]], *, tables: WarehouseTables
) -> Current:
    """Return the current ruleset and its effect on the log, after `Measurer.play_current`."""
    job, outcome = measurer.job, measurer.current.outcome
    requests = load_statements(
        measurer.connection,
        outcome,
        gateway=measurer.gateway,
        counted_from=day_start_ms(job.first_day),
        warehouse=tables,
    )
    return Current(
        measurer.connection,
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
    def saved(self) -> tuple[int, int]:
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
    best = max(played, key=lambda one: one.saved) if proposal.kind is Kind.LEAK_FIX else played[0]
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
