"""Measure the effect of a change of rules: the log minus a replay of the rules before the change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from msgspec import Meta

from analytics.replay.billed import bill_executions
from analytics.replay.calibration import Bounds
from analytics.replay.placing import NUMBER_OF
from analytics.replay.publish_cost import round_half_up
from analytics.replay.replay import replay
from analytics.replay.window import load_requests
from logs.definitions import EXECUTED, HIT, MEASURED_MISS
from logs.quoting import quote_texts
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duckdb import DuckDBPyConnection

    from analytics.advice.measure import PredictedGain, SignedBounds
    from analytics.replay.billed import BilledRange
    from analytics.replay.job import DayFile, Job

_LOGGED: Final = f"""
    SELECT count(*), coalesce(sum(mean_ms), 0)::BIGINT FROM request WHERE is_counted AND {HIT.of("logged")}
"""  # noqa: S608
_LOGGED_EXECUTIONS: Final = f"""
    SELECT 'logged' AS scope, {NUMBER_OF["serverHostname"]} AS host, day, requested_at AS starts,
        took_ms AS took
    FROM request WHERE took_ms IS NOT NULL AND {EXECUTED.of("logged")}
    UNION ALL SELECT 'logged', host, day, starts, took FROM outside_execution
"""  # noqa: S608
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
"""  # noqa: S608


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
    earlier = _read(connection, _BEFORE.format(files=files)) if before else None
    logged = _read(connection, _LOGGED)
    billed = bill_executions(connection, _LOGGED_EXECUTIONS, job).get("logged")
    days = (job.last_day - job.first_day).days + 1

    def predict(gain: SignedBounds | BilledRange) -> int:
        return round_half_up(_middle(gain) * days, predicted_days)

    return EffectMeasures(
        hits=_compare(
            logged.hits,
            without=result.total.hits,
            replayed=against.hits,
            predicted=predict(predicted.hits),
            before=None if earlier is None else earlier.hits,
        ),
        saved_ms=_compare(
            logged.saved_ms,
            without=result.total.saved_ms,
            replayed=against.saved_ms,
            predicted=predict(predicted.saved_ms),
            before=None if earlier is None else earlier.saved_ms,
        ),
        billed_ms=None
        if predicted.billed_ms is None
        else _compare(
            0 if billed is None else billed.ms,
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
    logged, without = (
        bill_executions(connection, _LOGGED_EXECUTIONS, job, pricing=pricing).get("logged")
        for pricing in (job.pricing, job.pricing.suspending_after(former))
    )
    logged_ms, without_ms = (0 if bill is None else bill.ms for bill in (logged, without))
    days = (job.last_day - job.first_day).days + 1
    gain = 0 if predicted.billed_ms is None else _middle(predicted.billed_ms)
    return EffectMeasures(
        billed_ms=_compare(
            logged_ms,
            without=Bounds(low=without_ms, likely=None, high=without_ms),
            replayed=Bounds(low=logged_ms, likely=None, high=logged_ms),
            predicted=round_half_up(gain * days, predicted_days),
            before=None,
        ),
        caveats=[],
    )


def _compare(
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


def _read(connection: DuckDBPyConnection, sql: str) -> _Logged:
    return _Logged(*connection.execute(sql).fetchall()[0])
