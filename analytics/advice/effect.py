"""Measure the effect of a change of rules: the log minus a replay of the rules before the change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.replay.publish_cost import round_half_up
from analytics.replay.replay import replay
from logs.quoting import quote_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import DayFile, Job

#: The measures by their JSON names, as columns of `_LOGGED` and `_BEFORE`.
_MEASURES: Final = ("hits", "savedMs")

_LOGGED: Final = """
    SELECT count(*), coalesce(sum(mean_ms), 0)::BIGINT FROM request WHERE is_counted AND logged = 'HIT'
"""
_BEFORE: Final = """
    WITH log AS (
        SELECT * FROM read_parquet({files}) WHERE timestamp IS NOT NULL AND standardizedSql IS NOT NULL
    ), mean AS (
        SELECT standardizedSql, floor(avg(warehouseExecutionTimeMs))::BIGINT AS mean_ms FROM log
        WHERE cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH') AND warehouseExecutionTimeMs >= 0
        GROUP BY standardizedSql
    )
    SELECT count(*), coalesce(sum(mean_ms), 0)::BIGINT FROM log LEFT JOIN mean USING (standardizedSql)
    WHERE cacheStatus = 'HIT'
"""


def measure_effect(
    connection: DuckDBPyConnection,
    job: Job,
    *,
    predicted: Mapping[str, Any],
    predicted_days: int,
    before: Sequence[DayFile],
    report: Callable[[float], None] = lambda _: None,
) -> dict[str, Any]:
    """Return ``{hits, savedMs, caveats}`` of docs/advice.md.

    Args:
        connection: a DuckDB of the caller alone; temporary tables are left in it.
        job: the days after the change, with the rules before it as ``subject`` and after it as ``current``.
        predicted: the gain that was predicted for ``predicted_days`` days.
        before: the files of as many days before the change; empty if the log has fewer.
        report: called with the progress. It may raise an exception to end the measurement.
    """
    result = replay(connection, job, report=report)
    logged = _read(connection, _LOGGED)
    earlier = (
        _read(connection, _BEFORE.format(files=quote_texts(file.file for file in before))) if before else {}
    )
    days = (job.last_day - job.first_day).days + 1
    return {
        **{
            name: _compare(
                logged[name],
                without=result["total"][name],
                replayed=result["against"]["total"][name],
                predicted=round_half_up(_middle(predicted[name]) * days, predicted_days),
                before=earlier.get(name),
            )
            for name in _MEASURES
        },
        "caveats": result["caveats"],
    }


def _compare(
    logged: int,
    *,
    without: Mapping[str, Any],
    replayed: Mapping[str, Any],
    predicted: int,
    before: int | None,
) -> dict[str, Any]:
    measured, error = logged - _middle(without), _middle(replayed) - logged
    return {
        "logged": logged,
        "withoutIt": dict(without),
        "measured": measured,
        "error": error,
        "predicted": predicted,
        "beforeAfter": None if before is None else logged - before,
        "inconclusive": abs(error) > abs(measured),
    }


def _middle(bounds: Mapping[str, Any]) -> int:
    """Return the likely value, or the middle of the bounds if there is none."""
    likely = bounds["likely"]
    return int((bounds["low"] + bounds["high"]) // 2 if likely is None else likely)


def _read(connection: DuckDBPyConnection, sql: str) -> dict[str, int]:
    return dict(zip(_MEASURES, connection.execute(sql).fetchall()[0], strict=True))
