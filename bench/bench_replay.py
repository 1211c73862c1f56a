"""Replay beside one scan of the columns that it reads, and what a replay does to the queries of others.

Goals: a replay takes at most 20 scans; twice the rows at most 2.2 times as long; a draft with its calibration
at most 1.8 times one replay; the 95th percentile of other queries at most 1.5 times as long.

Replays and scans are measured in seconds of the processor, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import statistics
import time
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa

from analytics.replay.job import DayFile, Job
from analytics.replay.priority import NICENESS
from analytics.replay.replay import replay
from bench import harness
from logs.compaction.convert import SCHEMA
from logs.compaction.engine import HOUR_COLUMN, PREFIX_HOUR_COLUMN
from logs.compaction.writer import write_day
from logs.quoting import quote_name, quote_texts
from rules.language import read_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rules.language import Rule

_FIRST: Final = date(2026, 3, 1)
_DAYS: Final = 8
#: What a replay of the demo's rules reads.
_COLUMNS: Final = (
    *("timestamp", "logId", "standardizedSql", "parameterValues", "cacheStatus", "cacheKey", "queryHash"),
    *("warehouseExecutionTimeMs", "responseSize", "cacheKeyVersion", "matchedRule", "tables", "isDDL"),
    *("cacheOverride", "hasNonDeterministicFunctions", "isDataChange", "statementType", "isReadOnly"),
    *("hasParameters", "clientIp", "userName"),
)
#: Queries beside a replay and without one: in so many turns, so many each.
_TURNS: Final = 12
_QUERIES: Final = 15
_OTHERS: Final = "SELECT matchedRule, count(*), max(standardizedSql) FROM read_parquet({}) GROUP BY 1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000, help="entries of eight days")
    parser.add_argument("--runs", type=int, default=3, help="runs of each step; the median counts")
    options = parser.parse_args()
    with harness.environment() as directory:
        from analytics.demo.reading import read_demo  # noqa: PLC0415  # needs Django

        profile = read_demo().profiles[0]
        rules = read_rules(profile.rules)
        files = write_log(profile, directory / "one", entries=options.entries)
        twice = write_log(profile, directory / "two", entries=2 * options.entries)
        draft = tuple(replace(rule, ttl_seconds=2 * rule.ttl_seconds) for rule in rules)
        steps: dict[str, Callable[[], None]] = {
            "scan": lambda: scan(files),
            "replay": lambda: run(files, rules, rules),
            "twice": lambda: run(twice, rules, rules),
            "draft": lambda: run(files, draft, rules),
        }
        taken: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(options.runs):
            for name, step in steps.items():
                start = time.process_time()
                step()
                taken[name].append(time.process_time() - start)
        ms = {name: 1000 * statistics.median(times) for name, times in taken.items()}
        alone, busy = measure_others(twice, rules)
    harness.show(
        f"Replay: {options.entries:,} entries, one thread; the last row is elapsed time",
        ["work", "ms", "beside", "ms", "ratio", "goal"],
        [
            ["replay", ms["replay"], "scan of its columns", ms["scan"], ms["replay"] / ms["scan"], 20],
            ["twice the rows", ms["twice"], "replay", ms["replay"], ms["twice"] / ms["replay"], 2.2],
            ["draft and calibration", ms["draft"], "replay", ms["replay"], ms["draft"] / ms["replay"], 1.8],
            ["p95 of other queries, replays running", busy, "none running", alone, busy / alone, 1.5],
        ],
    )


def write_log(profile: Any, directory: Path, *, entries: int) -> list[DayFile]:
    """Write the demo's log as the service stores it."""
    from analytics.demo.generate import generate  # noqa: PLC0415  # needs Django

    days: dict[date, list[dict[str, Any]]] = {}
    start: int | None = None
    for hour in generate(profile, tenant_id="bench", first_day=_FIRST, days=_DAYS, entries=entries):
        start = hour.start if start is None else start
        days.setdefault(_FIRST + timedelta(milliseconds=hour.start - start), []).extend(hour.entries)
    files = []
    for day, rows in days.items():
        place = directory / f"day={day}"
        place.mkdir(parents=True)
        own = {HOUR_COLUMN: 0, PREFIX_HOUR_COLUMN: 0}
        batch = pa.RecordBatch.from_pylist([row | own for row in rows], SCHEMA)
        write_day([batch], reused=None, target=place / "rows.parquet")
        files.append(DayFile(day, str(place / "rows.parquet")))
    return files


def scan(files: Sequence[DayFile]) -> None:
    with connect() as connection:
        columns = ", ".join(f"max({quote_name(name)})" for name in _COLUMNS)
        connection.execute(f"SELECT {columns} FROM {_source(files)}").fetchall()


def run(files: Sequence[DayFile], draft: tuple[Rule, ...], current: tuple[Rule, ...]) -> None:
    job = Job(files, files[1].day, files[-1].day, draft, current)
    with connect() as connection:
        replay(connection, job)


def connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def _source(files: Sequence[DayFile]) -> str:
    return f"read_parquet({quote_texts(file.file for file in files)})"


def measure_others(files: Sequence[DayFile], rules: tuple[Rule, ...]) -> tuple[float, float]:
    """Return the 95th percentile of a query in ms: while no replay runs, and beside one.

    The two are measured in turn: the process that replays is stopped and goes on.
    """
    worker = multiprocessing.get_context("spawn").Process(
        target=replay_for_ever, args=(files, rules), daemon=True
    )
    worker.start()
    assert worker.pid is not None
    time.sleep(3)
    statement = _OTHERS.format(quote_texts(file.file for file in files))
    taken: dict[signal.Signals, list[float]] = {signal.SIGSTOP: [], signal.SIGCONT: []}
    with connect() as connection:
        for _ in range(_TURNS):
            for turn, times in taken.items():
                os.kill(worker.pid, turn)
                time.sleep(0.05)
                for _ in range(_QUERIES):
                    start = time.perf_counter()
                    connection.execute(statement).fetchall()
                    times.append(1000 * (time.perf_counter() - start))
    worker.kill()
    alone, busy = (sorted(times)[int(len(times) * 0.95)] for times in taken.values())
    return alone, busy


def replay_for_ever(files: Sequence[DayFile], rules: tuple[Rule, ...]) -> None:
    # As the service does in the thread of a replay.
    os.nice(NICENESS)
    while True:
        run(files, rules, rules)


if __name__ == "__main__":
    main()
