"""Replay a job. Runs, the command and the benchmark call the one function `replay`.

docs/replay.md defines every number.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from analytics.replay.billed import KEPT, ReplayBilled, compare_bills, execution_sql
from analytics.replay.calibration import (
    Bounds,
    Calibration,
    MovedRequests,
    ReplayGrade,
    calibrate,
    find_moved,
)
from analytics.replay.counts import MISS_REASONS, Counts, count_outcome
from analytics.replay.evidence import EvidenceQuery, replay_evidence
from analytics.replay.gateway import find_other_gateways, learn_gateway
from analytics.replay.job import Ruleset
from analytics.replay.leaks import ReplayLeaks, compare_leaks
from analytics.replay.outcome import play
from analytics.replay.publish_cost import PublishCost, estimate_publish_cost
from analytics.replay.shapes import find_columns
from analytics.replay.window import load_requests
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import Gateway, Job
    from analytics.replay.outcome import Outcome
    from analytics.replay.window import LoadedRequests
    from analytics.savings.bill import Bill
    from rules.language import Rule


class Caveat(StrEnum):
    """Codes of what limits a result. docs/replay.md and `say_caveat` explain them."""

    WRITES_PAST_GATEWAY = "writes-past-gateway-invisible"
    LITERALS_HIDDEN = "literals-hidden"
    GATEWAY_UNKNOWN = "gateway-unknown"
    KEYS_PER_USER = "keys-per-user"
    DAYS_LEFT_OUT = "days-left-out"
    COLD_START = "cold-start"
    CALIBRATION_FAIR = "calibration-fair"
    CALIBRATION_POOR = "calibration-poor"
    CACHE_DISABLED = "cache-disabled"


class RiskCount(JsonStruct):
    """Hits that may have been stale. Writes past the Gateway are invisible."""

    low: Count
    high: Count


class GainCounts(JsonStruct):
    """The counts that are compared between rulesets."""

    hits: Bounds
    saved_ms: Bounds
    misses: Count
    spent_ms: Count
    hit_bytes: Count
    risk: RiskCount


class ReplayCounts(GainCounts):
    """What a ruleset does with the requests of a replay. Times in ms, sizes in bytes."""

    requests: Count
    stale_hits: Count
    miss_reasons: dict[str, Count]
    holds: Count
    bypassed: Count
    blocked: Count
    passed: Count
    errors: Count
    invalidation_errors: Count
    revalidations: Count
    fired: Count
    markers: Count


class ReplayRuleCounts(ReplayCounts):
    """What one rule does with the requests of a replay."""

    rule_id: Annotated[str | None, Meta(description="Null: requests without a rule.")]


class ReplayRuleset(JsonStruct):
    seq: Annotated[
        Count | None, Meta(description="The revision of the rules. Absent in replays of earlier releases.")
    ] = None
    total: ReplayCounts
    rules: list[ReplayRuleCounts]


class ReplayRows(JsonStruct):
    decidable: Count
    outside: Count
    exact: Count
    known: Count
    open: Count


class ReplayWindow(JsonStruct):
    from_: dt.date
    to: dt.date
    warmup_days: Count
    days_left_out: list[dt.date] | None = None


class LearnedGateway(JsonStruct):
    """What the Gateway does by itself; null: not known.

    Whether it declines requests is then within the bounds; that it keeps users apart is not assumed.
    """

    nocache: bool | None
    non_deterministic: bool | None
    keys_per_user: bool | None


class ReplayInput(JsonStruct):
    window: ReplayWindow
    rows: ReplayRows
    gateway: LearnedGateway


class ReplayResult(ReplayInput):
    calibration: Calibration
    total: ReplayCounts
    rules: list[ReplayRuleCounts]
    against: ReplayRuleset
    billed: ReplayBilled
    moved: list[MovedRequests]
    leaks: ReplayLeaks
    publish_cost: PublishCost
    caveats: list[str]
    evidence: list[EvidenceQuery]
    names: Annotated[
        dict[str, str] | None,
        Meta(description="The names of the rules by id. Absent in replays of earlier releases."),
    ] = None


def replay(
    connection: DuckDBPyConnection, job: Job, *, report: Callable[[float], None] = lambda _: None
) -> ReplayResult:
    """Replay a job and return its result.

    Args:
        connection: a DuckDB of the caller alone; temporary tables are left in it.
        report: called with the progress, 0 to 1. It may raise an exception to end the replay.
    """
    rulesets = [job.subject, job.current, *(ruleset.rules for ruleset in job.in_force)]
    loaded = load_requests(
        connection,
        job.files,
        first_day=job.first_day,
        columns=set().union(*map(find_columns, rulesets)),
        changes=job.changes,
    )
    report(0.3)
    in_force = list(job.in_force) or [Ruleset(0, job.current)]
    gateway = learn_gateway(connection, job, in_force, restarts=loaded.restarts)
    player = Player(connection, job, loaded, gateway)
    # Equal rulesets are replayed once.
    calibrated, in_force_counts = player.play("in_force", in_force)
    calibration = calibrate(connection, calibrated)
    report(0.5)
    if len(in_force) == 1 and in_force[0].rules == job.current:
        current, current_counts = calibrated, in_force_counts
    else:
        current, current_counts = player.play("current", [Ruleset(0, job.current)])
    report(0.7)
    if job.subject == job.current:
        subject, counts = current, current_counts
    else:
        subject, counts = player.play("subject", [Ruleset(0, job.subject)])
    report(0.9)
    position = find_position(current_counts, counts)
    caveats = find_caveats(
        job,
        loaded,
        gateway,
        calibration.grade,
        is_gateway_unknown=any(len(runs) > 1 for runs in (in_force_counts, current_counts, counts)),
    )
    return compare_rulesets(
        connection,
        job,
        describe_input(job, loaded, gateway),
        calibration=calibration,
        outcomes=(current, subject),
        against=render_counts(current_counts, job.current, position),
        counts=render_counts(counts, job.subject, position),
        billed=compare_bills(bills_of(counts), bills_of(current_counts), job.pricing),
        position=position,
        caveats=caveats,
    )


def compare_rulesets(
    connection: DuckDBPyConnection,
    job: Job,
    replayed: ReplayInput,
    *,
    calibration: Calibration,
    outcomes: tuple[Outcome, Outcome],
    against: ReplayRuleset,
    counts: ReplayRuleset,
    billed: ReplayBilled,
    position: float | None,
    caveats: list[str],
) -> ReplayResult:
    """Return the result of a replay.

    Args:
        outcomes: under the current ruleset and under the replayed one.
        against: the counts of the current ruleset.
        counts: the counts of the replayed one.
        position: where the truth lies between the bounds.
    """
    current, subject = outcomes
    return ReplayResult(
        **msgspec.structs.asdict(replayed),
        calibration=calibration,
        total=counts.total,
        rules=counts.rules,
        against=against,
        billed=billed,
        moved=find_moved(connection, current.table, subject.table, position=position),
        leaks=compare_leaks(connection, current, subject, per_user_tables=job.per_user_tables or ()),
        publish_cost=estimate_publish_cost(
            connection, subject.table, first_day=job.first_day, last_day=job.last_day, hour=job.hour
        ),
        caveats=caveats,
        evidence=replay_evidence(job.first_day, job.last_day),
        names={rule.id: rule.name for it in outcomes for rule in it.decisions.rules if rule.name},
    )


def complete_gateway(stored: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a stored result or report. Earlier releases did not learn ``gateway.keysPerUser``: null."""
    if stored is None or "gateway" not in stored:
        return stored
    return {**stored, "gateway": {"keysPerUser": None, **stored["gateway"]}}


def describe_input(job: Job, loaded: LoadedRequests, gateway: Gateway) -> ReplayInput:
    return ReplayInput(
        window=ReplayWindow(
            from_=job.first_day,
            to=job.last_day,
            warmup_days=job.warmup_days,
            days_left_out=_find_days_left_out(job, loaded),
        ),
        rows=ReplayRows(
            decidable=loaded.decidable,
            outside=loaded.outside,
            exact=loaded.exact,
            known=loaded.known,
            open=loaded.open,
        ),
        gateway=LearnedGateway(
            nocache=gateway.nocache,
            non_deterministic=gateway.non_deterministic,
            keys_per_user=gateway.keys_per_user,
        ),
    )


class Player:
    """Plays rulesets, once for each possible setting of the Gateway."""

    def __init__(
        self, connection: DuckDBPyConnection, job: Job, loaded: LoadedRequests, gateway: Gateway
    ) -> None:
        self._connection, self._job, self._loaded = connection, job, loaded
        self._gateway = gateway

    def play(
        self, table: str, rulesets: Sequence[Ruleset], *, keep: bool = False
    ) -> tuple[Outcome, list[Counts]]:
        """Create ``table``. Return its outcome, and the counts under each possible setting of the Gateway.

        With ``keep``, the table `KEPT` has the executions of the outcome (`execution_sql`).
        """
        outcome, counts = self._play(table, rulesets, self._gateway)
        if keep:
            executions = execution_sql(table, is_exact=self._loaded.is_exact)
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {KEPT} AS {executions}")
        runs = [counts]
        for other in find_other_gateways(self._connection, self._gateway):
            runs.append(self._play("other_gateway", rulesets, other)[1])
            self._connection.execute("DROP TABLE other_gateway")
        return outcome, runs

    def _play(self, table: str, rulesets: Sequence[Ruleset], gateway: Gateway) -> tuple[Outcome, Counts]:
        outcome = play(
            self._connection,
            rulesets,
            table=table,
            gateway=gateway,
            restarts=self._loaded.restarts,
            markers=self._job.markers,
        )
        counts = count_outcome(self._connection, outcome, self._job, is_exact=self._loaded.is_exact)
        return outcome, counts


def bills_of(runs: Iterable[Counts]) -> list[Bill]:
    """Return all bills that the settings of the Gateway and hidden literals allow."""
    return [bill for counts in runs for bill in counts.bills]


def _find_days_left_out(job: Job, loaded: LoadedRequests) -> list[dt.date]:
    """Return the counted days without data, and all days on which a column of the rules is null."""
    days = (job.first_day + dt.timedelta(offset) for offset in range((job.last_day - job.first_day).days + 1))
    present = {file.day for file in job.files}
    return sorted({*loaded.days_left_out, *(day for day in days if day not in present)})


def find_position(current: list[Counts], subject: list[Counts]) -> float | None:
    """Return where the truth lies between the bounds, for both rulesets.

    Two positions would make a difference for rules that are equal in both.
    """
    own = current[0].position
    return subject[0].position if own is None else own


def render_counts(runs: list[Counts], rules: Iterable[Rule], position: float | None) -> ReplayRuleset:
    """Return ``total`` and ``rules``: the rules of the ruleset in order, then requests without a rule."""
    ids: list[str | None] = [rule.id for rule in rules]
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
    runs: list[Counts], rule_ids: Sequence[str | None], position: float | None
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


def _bounds(runs: list[Counts], rule_ids: Sequence[str | None], name: str, position: float | None) -> Bounds:
    low = min(sum(run.rules[rule_id][name] for rule_id in rule_ids if rule_id in run.rules) for run in runs)
    high = max(
        sum((run.high_hits if name == "hits" else run.high_saved_ms).get(rule_id, 0) for rule_id in rule_ids)
        for run in runs
    )
    likely = None if position is None else int(low + position * (high - low) + 0.5)
    return Bounds(low=low, likely=likely, high=high)


def find_caveats(
    job: Job, loaded: LoadedRequests, gateway: Gateway, grade: ReplayGrade, *, is_gateway_unknown: bool
) -> list[str]:
    """Return the codes of what limits the result. Contract: docs/replay.md."""
    caveats = {
        Caveat.WRITES_PAST_GATEWAY: True,
        Caveat.LITERALS_HIDDEN: loaded.open > 0,
        Caveat.GATEWAY_UNKNOWN: is_gateway_unknown,
        Caveat.KEYS_PER_USER: gateway.keys_per_user is True,
        Caveat.DAYS_LEFT_OUT: bool(_find_days_left_out(job, loaded)),
        Caveat.COLD_START: not any(
            file.day < job.first_day and file.day not in loaded.days_left_out for file in job.files
        ),
        Caveat.CALIBRATION_FAIR: grade == "fair",
        Caveat.CALIBRATION_POOR: grade == "poor",
        Caveat.CACHE_DISABLED: not job.cache_enabled,
    }
    return [caveat.value for caveat, applies in caveats.items() if applies]
