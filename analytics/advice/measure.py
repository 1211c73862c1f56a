"""Replay the ruleset with a proposal, and compare it with the current ruleset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from analytics.advice.requests import STATEMENT_COLUMNS
from analytics.replay.billed import (
    KEPT,
    BilledRange,
    MoneyRange,
    ReplayBilled,
    bill_executions,
    compare_bills,
)
from analytics.replay.calibration import calibrate
from analytics.replay.caveats import find_caveats
from analytics.replay.changes import gain_of
from analytics.replay.comparing import compare_rulesets, render_counts
from analytics.replay.evidence import EvidenceQuery
from analytics.replay.job import Ruleset
from analytics.replay.player import Player
from analytics.replay.result import ReplayCounts, ReplayResult, describe_input
from analytics.replay.shapes import find_columns
from analytics.replay.window import load_requests
from logs.sql.view import LogView
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duckdb import DuckDBPyConnection

    from accounts.tenants.pricing import Pricing
    from analytics.advice.awake import Move
    from analytics.replay.job import Job
    from analytics.replay.outcome import Outcome
    from rules.language import Rule


class SignedBounds(JsonStruct):
    low: int
    likely: int | None
    high: int


class SignedRisk(JsonStruct):
    low: int
    high: int


class PredictedGain(JsonStruct):
    """What the recommendation changes. Times in ms, sizes in bytes.

    ``hits``, ``saved_ms`` and ``risk`` have the bounds that the figures of a replay show; the other counts
    are differences of totals.
    """

    hits: SignedBounds
    saved_ms: SignedBounds
    misses: int
    spent_ms: int
    hit_bytes: int
    risk: SignedRisk
    billed_ms: Annotated[
        BilledRange | None,
        Meta(
            description="Less than 0 if the warehouse bills less. Absent in predictions of earlier releases."
        ),
    ] = None
    money: Annotated[
        MoneyRange | None, Meta(description="What `billedMs` costs. Absent without a price.")
    ] = None


class SuspendChange(JsonStruct):
    """After how many seconds the warehouse suspends."""

    now: Count
    then: Count


#: The bounds of a change of nothing.
_NOTHING: Final = {name: {"low": 0, "likely": None, "high": 0} for name in ("hits", "savedMs", "risk")}


class Prediction(JsonStruct):
    """A replay of the rules with the recommendation (``total``) and without it (``against``)."""

    total: ReplayCounts
    against: ReplayCounts
    gain: PredictedGain
    auto_suspend: Annotated[
        SuspendChange | None, Meta(description="Of `auto-suspend`: the rules stay as they are.")
    ] = None


class EvidenceRows(EvidenceQuery):
    """A statement over ``proxy_logs``, and what it gave when the recommendation was made."""

    rows: list[dict[str, Any]]


class Measurer:
    """Loads the log of a job once, and replays rulesets over it."""

    def __init__(self, connection: DuckDBPyConnection, job: Job) -> None:
        self._connection, self._job = connection, job
        rulesets = [job.current, *(ruleset.rules for ruleset in job.in_force)]
        self._loaded = load_requests(
            connection,
            job.files,
            first_day=job.first_day,
            columns={*STATEMENT_COLUMNS, "standardizedSql"}.union(*map(find_columns, rulesets)),
            changes=job.changes,
        )
        self._player = Player(connection, job, self._loaded)
        self.gateway = self._player.gateway
        self.input = describe_input(job, self._loaded, self.gateway)
        LogView(connection).make_tolerant([file.file for file in job.files])

    def play_current(self) -> Outcome:
        """Replay the rules that were in force, then the current ones. Return the outcome of the current."""
        job = self._job
        in_force = self._player.play("current", job.rulesets_in_force, keep=True)
        self.calibration = calibrate(self._connection, in_force.outcome)
        current = in_force
        if not job.has_one_ruleset:
            current = self._player.play("current", [Ruleset(0, job.current)], keep=True)
        self._is_gateway_unknown = in_force.is_gateway_unknown or current.is_gateway_unknown
        self._current = current
        self._total = render_counts(current, current.runs[0].position).total
        self.risk = {
            rule_id: (rule_counts["risk_low"], rule_counts["risk_high"], rule_counts["hits"])
            for rule_id, rule_counts in current.runs[0].rules.items()
            if rule_id is not None
        }
        return current.outcome

    def predict(self, rules: tuple[Rule, ...]) -> tuple[Prediction, ReplayResult]:
        """Replay a ruleset, and return the difference to the current one and the whole result.

        Args:
            rules: their conditions read only `STATEMENT_COLUMNS`, the statement, and columns that the current
                rules read.
        """
        subject = self._player.play("subject", [Ruleset(0, rules)])
        is_gateway_unknown = self._is_gateway_unknown or subject.is_gateway_unknown
        result = compare_rulesets(
            self._connection,
            self._job,
            self.input,
            calibration=self.calibration,
            current=self._current,
            subject=subject,
            caveats=self._find_caveats(is_gateway_unknown=is_gateway_unknown),
        )
        bounds = gain_of(msgspec.to_builtins(result))
        return _compare(result.total, result.against.total, result.billed, bounds), result

    def predict_moved(self, move: Move) -> Prediction:
        """Return what the current rules bill if some of their executions ran in another minute."""
        return self._predict_bills(move.apply(KEPT), self._job.pricing)

    def predict_suspend(self, change: SuspendChange) -> Prediction:
        """Return what the current rules bill if the warehouse suspended after another time."""
        prediction = self._predict_bills(f"FROM {KEPT}", self._job.pricing.suspending_after(change.then))
        return msgspec.structs.replace(prediction, auto_suspend=change)

    def _predict_bills(self, executions: str, pricing: Pricing) -> Prediction:
        job = self._job
        now = list(bill_executions(self._connection, f"FROM {KEPT}", job).values())
        then = list(bill_executions(self._connection, executions, job, pricing=pricing).values())
        billed = compare_bills(then, now, job.pricing)
        return _compare(self._total, self._total, billed, _NOTHING)

    def _find_caveats(self, *, is_gateway_unknown: bool) -> list[str]:
        grade = self.calibration.grade
        return find_caveats(
            self._job, self._loaded, self.gateway, grade, is_gateway_unknown=is_gateway_unknown
        )

    @property
    def warehouse_ms(self) -> int:
        """The warehouse time (ms) under the current rules."""
        return self._total.spent_ms

    @property
    def caveats(self) -> list[str]:
        return self._find_caveats(is_gateway_unknown=self._is_gateway_unknown)

    def run_evidence(self, query: EvidenceQuery) -> EvidenceRows:
        """Return a statement over ``proxy_logs`` with its rows."""
        relation = self._connection.execute(query.sql)
        names = [column[0] for column in relation.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in relation.fetchall()]
        return EvidenceRows(**msgspec.structs.asdict(query), rows=rows)


def _compare(
    total: ReplayCounts,
    against: ReplayCounts,
    billed: ReplayBilled,
    bounds: Mapping[str, Any],
) -> Prediction:
    gain = PredictedGain(
        hits=msgspec.convert(bounds["hits"], SignedBounds),
        saved_ms=msgspec.convert(bounds["savedMs"], SignedBounds),
        misses=total.misses - against.misses,
        spent_ms=total.spent_ms - against.spent_ms,
        hit_bytes=total.hit_bytes - against.hit_bytes,
        risk=msgspec.convert(bounds["risk"], SignedRisk),
        billed_ms=billed.gain.billed_ms,
        money=billed.gain.money,
    )
    return Prediction(total=total, against=against, gain=gain)
