"""Predict what a recommendation would do by a replay, and measure what an accepted one did."""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from analytics.advice.estimate import STATEMENT_COLUMNS
from analytics.replay.bounds import render_counts
from analytics.replay.compare import round_half_up
from analytics.replay.count import KEPT, bill_executions, compare_bills
from analytics.replay.figures import gain_of
from analytics.replay.load import NUMBER_OF, load_requests
from analytics.replay.replayer import Replayer, replay
from analytics.replay.result import (
    BilledRange,
    Bounds,
    EvidenceQuery,
    MoneyRange,
    ReplayBilled,
    ReplayCounts,
    ReplayResult,
)
from logs.definitions import EXECUTED, HIT, MEASURED_MISS
from logs.layout import HOUR_MS
from logs.quoting import quote_texts
from logs.sql.view import LogView
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from accounts.tenants.pricing import Pricing
    from analytics.replay.load import DayFile, Job
    from rules.language import Rule

MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Group:
    """The executions of some statements (by number) that the rule with this index decides.

    Without an index they are all executions of the statements, however they are decided.
    """

    statements: frozenset[int]
    rule: int | None = None

    @property
    def numbers(self) -> str:
        """SQL for the numbers of these executions in the table of the current outcome."""
        rule = (
            ""
            if self.rule is None
            else f" AND rule = {self.rule} AND NOT is_change AND (is_cached OR rule < 0)"
        )
        return (
            "SELECT n FROM current JOIN statement_shape USING (statement, shape)"
            f" WHERE list_contains({sorted(self.statements)}::BIGINT[], number){rule}"
        )


@dataclass(frozen=True, slots=True)
class Move:
    """Run the executions of a group in this minute of their hour."""

    group: Group
    minute: int

    def apply(self, table: str) -> str:
        """Return SQL for the executions of a table, with the moved ones at their other time."""
        moved = f"starts - starts % {HOUR_MS} + {self.minute * MINUTE_MS} + starts % {MINUTE_MS}"
        return f"SELECT * REPLACE (if(n IN ({self.group.numbers}), {moved}, starts) AS starts) FROM {table}"


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
            description="Less than 0 if the warehouse bills less. Absent in predictions from a sample and of "
            "earlier releases."
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


class Measurer(Replayer):
    """Predicts what proposals would do by replays, from the log that it loads once."""

    def __init__(self, connection: DuckDBPyConnection, job: Job) -> None:
        super().__init__(connection, job, columns=[*STATEMENT_COLUMNS, "standardizedSql"])
        LogView(connection).make_tolerant([file.file for file in job.files])

    def play_current(self, *, keep: bool = True) -> None:
        super().play_current(keep=keep)
        counts = self.current.runs[0]
        self._total = render_counts(self.current, counts.position).total
        #: By rule id, the low and the high count of hits at risk, and the count of all hits.
        self.risk = {
            rule_id: (own["risk_low"], own["risk_high"], own["hits"])
            for rule_id, own in counts.rules.items()
            if rule_id is not None
        }

    def predict(self, rules: tuple[Rule, ...]) -> tuple[Prediction, ReplayResult]:
        """Replay a ruleset, and return the difference to the current one and the whole result.

        Args:
            rules: their conditions read only `STATEMENT_COLUMNS`, the statement, and columns that the current
                rules read.
        """
        result = self.compare(rules)
        bounds = gain_of(msgspec.to_builtins(result))
        return _predict(result.total, result.against.total, result.billed, bounds), result

    def predict_moved(self, move: Move) -> Prediction:
        """Return what the current rules bill if some of their executions ran in another minute."""
        return self._predict_bills(move.apply(KEPT), self.job.pricing)

    def predict_suspend(self, change: SuspendChange) -> Prediction:
        """Return what the current rules bill if the warehouse suspended after another time."""
        prediction = self._predict_bills(f"FROM {KEPT}", self.job.pricing.suspending_after(change.then))
        return msgspec.structs.replace(prediction, auto_suspend=change)

    def _predict_bills(self, executions: str, pricing: Pricing) -> Prediction:
        now = list(bill_executions(self.connection, f"FROM {KEPT}", self.job).values())
        then = list(bill_executions(self.connection, executions, self.job, pricing=pricing).values())
        return _predict(self._total, self._total, compare_bills(then, now, self.job.pricing), _NOTHING)

    @property
    def warehouse_ms(self) -> int:
        """The warehouse time (ms) under the current rules."""
        return self._total.spent_ms

    def run_evidence(self, query: EvidenceQuery) -> EvidenceRows:
        """Return a statement over ``proxy_logs`` with its rows."""
        relation = self.connection.execute(query.sql)
        names = [column[0] for column in relation.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in relation.fetchall()]
        return EvidenceRows(**msgspec.structs.asdict(query), rows=rows)


def _predict(
    total: ReplayCounts,
    against: ReplayCounts,
    billed: ReplayBilled | None,
    bounds: Mapping[str, Any],
) -> Prediction:
    gain = PredictedGain(
        hits=msgspec.convert(bounds["hits"], SignedBounds),
        saved_ms=msgspec.convert(bounds["savedMs"], SignedBounds),
        misses=total.misses - against.misses,
        spent_ms=total.spent_ms - against.spent_ms,
        hit_bytes=total.hit_bytes - against.hit_bytes,
        risk=msgspec.convert(bounds["risk"], SignedRisk),
        billed_ms=None if billed is None else billed.gain.billed_ms,
        money=None if billed is None else billed.gain.money,
    )
    return Prediction(total=total, against=against, gain=gain)


_LOGGED: Final = f"""
    SELECT coalesce(sum(weight), 0)::BIGINT, coalesce(sum(mean_ms * weight), 0)::BIGINT FROM request
    WHERE is_counted AND {HIT.of("logged")}
"""
_LOGGED_EXECUTIONS: Final = f"""
    SELECT 'logged' AS scope, {NUMBER_OF["serverHostname"]} AS host, day, requested_at AS starts,
        took_ms AS took
    FROM request WHERE took_ms IS NOT NULL AND {EXECUTED.of("logged")}
    UNION ALL SELECT 'logged', host, day, starts, took FROM outside_execution
"""
_BEFORE: Final = f"""
    WITH log AS (
        SELECT * FROM read_parquet({{files}}) WHERE timestamp IS NOT NULL AND standardizedSql IS NOT NULL
    ), mean AS (
        SELECT standardizedSql, floor(avg(warehouseExecutionTimeMs))::BIGINT AS mean_ms FROM log
        WHERE {MEASURED_MISS}
        GROUP BY standardizedSql
    )
    SELECT count(*), coalesce(sum(mean_ms), 0)::BIGINT FROM log LEFT JOIN mean USING (standardizedSql)
    WHERE {HIT}
"""


class EffectMeasure(JsonStruct):
    """One measure over the period.

    ``withoutIt`` replays the rules before the recommendation, and ``measured`` is ``logged`` less that.
    ``error`` is how far the replay of the rules with it is from the log. ``predicted`` is the prediction for
    as many days. ``beforeAfter`` compares with the days before, and is not adjusted for traffic.
    """

    logged: Count
    without_it: Bounds
    measured: int
    error: int
    predicted: int
    before_after: int | None
    inconclusive: Annotated[bool, Meta(description="The error is larger than what was measured.")]


class EffectMeasures(JsonStruct):
    """What an accepted recommendation did. ``hits`` and the rest are absent before 3 whole days."""

    hits: EffectMeasure | None = None
    saved_ms: EffectMeasure | None = None
    billed_ms: Annotated[
        EffectMeasure | None,
        Meta(description="Less than 0 if the warehouse bills less. `beforeAfter` is null."),
    ] = None
    caveats: list[str] | None = None


def measure_effect(
    connection: DuckDBPyConnection,
    job: Job,
    *,
    predicted: PredictedGain,
    predicted_days: int,
    before: Sequence[DayFile],
    report: Callable[[float], None] = lambda _: None,
) -> EffectMeasures:
    """Return the measures of docs/advice.md.

    Args:
        connection: a DuckDB of the caller alone; temporary tables are left in it.
        job: the days after the change, with the rules before it as ``subject`` and after it as ``current``.
        predicted: the gain that was predicted for ``predicted_days`` days.
        before: the files of as many days before the change; empty if the log has fewer.
        report: called with the progress. It may raise an exception to end the measurement.
    """
    result = replay(connection, job, report=report)
    against = result.against.total
    files = quote_texts(file.file for file in before)
    earlier = _read_logged(connection, _BEFORE.format(files=files)) if before else None
    logged = _read_logged(connection, _LOGGED)
    days = (job.last_day - job.first_day).days + 1

    def predict(gain: SignedBounds | BilledRange) -> int:
        return round_half_up(_middle(gain) * days, predicted_days)

    return EffectMeasures(
        hits=_measure(
            logged.hits,
            without=result.total.hits,
            replayed=against.hits,
            predicted=predict(predicted.hits),
            before=None if earlier is None else earlier.hits,
        ),
        saved_ms=_measure(
            logged.saved_ms,
            without=result.total.saved_ms,
            replayed=against.saved_ms,
            predicted=predict(predicted.saved_ms),
            before=None if earlier is None else earlier.saved_ms,
        ),
        billed_ms=None
        if predicted.billed_ms is None or result.billed is None
        else _measure(
            _bill_logged(connection, job),
            without=_bounds(result.billed.total.billed_ms),
            replayed=_bounds(result.billed.against.billed_ms),
            predicted=predict(predicted.billed_ms),
            before=None,
        ),
        caveats=result.caveats,
    )


def measure_suspend(
    connection: DuckDBPyConnection, job: Job, *, former: int, predicted: PredictedGain, predicted_days: int
) -> EffectMeasures:
    """Return what the executions in the log bill, less what they would bill under the former time.

    Args:
        former: the seconds after which the warehouse suspended before.
    """
    load_requests(connection, job.files, first_day=job.first_day, columns=set(), changes=())
    logged_ms = _bill_logged(connection, job)
    without_ms = _bill_logged(connection, job, job.pricing.suspending_after(former))
    days = (job.last_day - job.first_day).days + 1
    gain = 0 if predicted.billed_ms is None else _middle(predicted.billed_ms)
    return EffectMeasures(
        billed_ms=_measure(
            logged_ms,
            without=Bounds(low=without_ms, likely=None, high=without_ms),
            replayed=Bounds(low=logged_ms, likely=None, high=logged_ms),
            predicted=round_half_up(gain * days, predicted_days),
            before=None,
        ),
        caveats=[],
    )


def _bill_logged(connection: DuckDBPyConnection, job: Job, pricing: Pricing | None = None) -> int:
    bill = bill_executions(connection, _LOGGED_EXECUTIONS, job, pricing=pricing).get("logged")
    return 0 if bill is None else bill.ms


def _measure(
    logged: int, *, without: Bounds, replayed: Bounds, predicted: int, before: int | None
) -> EffectMeasure:
    measured, error = logged - _middle(without), _middle(replayed) - logged
    return EffectMeasure(
        logged=logged,
        without_it=without,
        measured=measured,
        error=error,
        predicted=predicted,
        before_after=None if before is None else logged - before,
        inconclusive=abs(error) > abs(measured),
    )


def _bounds(billed: BilledRange) -> Bounds:
    return Bounds(low=billed.low, likely=None, high=billed.high)


def _middle(bounds: Bounds | SignedBounds | BilledRange) -> int:
    """Return the likely value, or the middle of the bounds if there is none."""
    likely = getattr(bounds, "likely", None)
    return (bounds.low + bounds.high) // 2 if likely is None else likely


class _Logged(NamedTuple):
    """The hits of a log, and the time that they saved."""

    hits: int
    saved_ms: int


def _read_logged(connection: DuckDBPyConnection, sql: str) -> _Logged:
    return _Logged(*connection.execute(sql).fetchall()[0])
