"""Compare the replayed ruleset with the current one: the result of a replay."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from analytics.replay.billed import compare_bills
from analytics.replay.calibration import Bounds, find_moved
from analytics.replay.counts import MISS_REASONS
from analytics.replay.evidence import replay_evidence
from analytics.replay.leaks import compare_leaks
from analytics.replay.publish_cost import estimate_publish_cost
from analytics.replay.result import ReplayCounts, ReplayResult, ReplayRuleCounts, ReplayRuleset, RiskCount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.calibration import Calibration
    from analytics.replay.counts import Counts
    from analytics.replay.job import Job
    from analytics.replay.player import Played
    from analytics.replay.result import ReplayInput
    from analytics.reports.savings_sql import Bill


def compare_rulesets(
    connection: DuckDBPyConnection,
    job: Job,
    replayed: ReplayInput,
    *,
    calibration: Calibration,
    current: Played,
    subject: Played,
    caveats: list[str],
) -> ReplayResult:
    """Return the result of a replay of ``subject`` beside the current ruleset."""
    outcomes = current.outcome, subject.outcome
    position = _find_position(current, subject)
    counts = render_counts(subject, position)
    return ReplayResult(
        **msgspec.structs.asdict(replayed),
        calibration=calibration,
        total=counts.total,
        rules=counts.rules,
        against=render_counts(current, position),
        billed=compare_bills(_bills_of(subject), _bills_of(current), job.pricing),
        moved=find_moved(connection, *(it.table for it in outcomes), position=position),
        leaks=compare_leaks(connection, *outcomes, warehouse=job.tables),
        publish_cost=estimate_publish_cost(
            connection,
            subject.outcome.table,
            first_day=job.first_day,
            last_day=job.last_day,
            left_out=sum(day >= job.first_day for day in replayed.window.days_left_out or ()),
            hour=job.hour,
        ),
        caveats=caveats,
        evidence=replay_evidence(job.first_day, job.last_day),
        names={rule.id: rule.name for it in outcomes for rule in it.decisions.rules if rule.name},
    )


def _find_position(current: Played, subject: Played) -> float | None:
    """Return where the truth lies between the bounds, for both rulesets.

    Two positions would make a difference for rules that are equal in both.
    """
    own = current.runs[0].position
    return subject.runs[0].position if own is None else own


def _bills_of(played: Played) -> list[Bill]:
    """Return all bills that the settings of the Gateway and hidden literals allow."""
    return [bill for counts in played.runs for bill in counts.bills]


def render_counts(played: Played, position: float | None) -> ReplayRuleset:
    """Return ``total`` and ``rules``: the rules of the ruleset in order, then requests without a rule."""
    runs = played.runs
    ids: list[str | None] = [rule.id for rule in played.rules]
    every: Sequence[str | None] = [*ids, *(key for key in runs[0].rules if key not in {*ids, None}), None]
    return ReplayRuleset(
        total=_render_counts(runs, every, position),
        rules=[
            ReplayRuleCounts(
                **msgspec.structs.asdict(_render_counts(runs, [rule_id], position)), rule_id=rule_id
            )
            for rule_id in every
        ],
    )


def _render_counts(
    runs: Sequence[Counts], rule_ids: Sequence[str | None], position: float | None
) -> ReplayCounts:
    counts: Counter[str] = Counter()
    for rule_id in rule_ids:
        counts.update(runs[0].rules.get(rule_id, {}))
    return ReplayCounts(
        hits=_bounds(runs, rule_ids, "hits", position),
        saved_ms=_bounds(runs, rule_ids, "saved_ms", position),
        misses=counts["misses"],
        spent_ms=counts["spent_ms"],
        hit_bytes=counts["hit_bytes"],
        risk=RiskCount(low=counts["risk_low"], high=counts["risk_high"]),
        requests=counts["requests"],
        stale_hits=counts["stale_hits"],
        miss_reasons={reason: counts[reason] for reason in MISS_REASONS},
        holds=counts["holds"],
        bypassed=counts["bypassed"],
        blocked=counts["blocked"],
        passed=counts["passed"],
        errors=counts["errors"],
        invalidation_errors=counts["invalidation_errors"],
        revalidations=counts["revalidations"],
        fired=counts["fired"],
        markers=counts["markers"],
    )


def _bounds(
    runs: Sequence[Counts], rule_ids: Sequence[str | None], name: str, position: float | None
) -> Bounds:
    low = min(sum(run.rules[rule_id][name] for rule_id in rule_ids if rule_id in run.rules) for run in runs)
    high = max(
        sum((run.high_hits if name == "hits" else run.high_saved_ms).get(rule_id, 0) for rule_id in rule_ids)
        for run in runs
    )
    likely = None if position is None else int(low + position * (high - low) + 0.5)
    return Bounds(low=low, likely=likely, high=high)
