"""A replay of the demo's rules beside one scan of its columns; a search for recommendations beside a replay;
and the queries of others while replays run.

Processor time, in one thread, except for the queries of others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import duckdb

from analytics.advice.mine import mine
from analytics.demo.logs import LogPlan, compact_days, read_demo, write_logs
from analytics.replay.execution import NICENESS
from analytics.replay.load import Job
from analytics.replay.replayer import replay
from bench.harness import Compared, medians_in_turn, p95, show, time_of
from logs.quoting import quote_name, quote_texts
from rules.language import read_rules
from rules.tables.warehouse import ANY_TABLES
from tenantadmin.lib.objectstore import LocalStore

if TYPE_CHECKING:
    from analytics.demo.profile import Profile
    from analytics.replay.load import DayFile
    from rules.language import Rule

_FIRST = date(2026, 3, 1)
_DAYS = 8
#: What a replay of the demo's rules reads.
_COLUMNS = (
    *("timestamp", "logId", "standardizedSql", "parameterValues", "cacheStatus", "cacheKey", "queryHash"),
    *("warehouseExecutionTimeMs", "responseSize", "cacheKeyVersion", "matchedRule", "tables", "isDDL"),
    *("cacheOverride", "hasNonDeterministicFunctions", "isDataChange", "statementType", "isReadOnly"),
    *("hasParameters", "clientIp", "userName"),
)


def main(directory: Path, *, entries: int = 100_000, runs: int = 3, turns: int = 12) -> None:
    profile = read_demo().profiles[0]
    rules = read_rules(profile.rules)
    files = write_log(profile, directory / "one", entries=entries)
    twice = write_log(profile, directory / "two", entries=2 * entries)
    draft = tuple(replace(rule, ttl_seconds=2 * rule.ttl_seconds) for rule in rules)
    replayed, scanned, of_twice, of_draft, searched = medians_in_turn(
        lambda: run(replay, make_job(files, rules, rules)),
        lambda: scan(files),
        lambda: run(replay, make_job(twice, rules, rules)),
        lambda: run(replay, make_job(files, draft, rules)),
        lambda: run(
            partial(mine, documents=profile.rules, tables=ANY_TABLES, dismissed={}),
            make_job(files, rules, rules),
        ),
        runs=runs,
        clock=time.process_time,
    )
    rows = [
        Compared("replay", replayed, "scan of its columns", scanned, 20),
        Compared("replay of twice the rows", of_twice, "replay", replayed, 2.2),
        Compared("replay of a draft with its calibration", of_draft, "replay", replayed, 1.8),
        Compared("search for recommendations", searched, "replay", replayed, 8),
    ]
    show(f"Replay of {entries:,} entries of {_DAYS} days", "ms", rows)
    show("Elapsed time of the queries of others", "ms", [measure_others(twice, rules, turns=turns)])


def write_log(profile: Profile, directory: Path, *, entries: int) -> list[DayFile]:
    """Write the demo's log as the service stores it."""
    store = LocalStore(directory / "objects")
    plan = LogPlan(profile, UUID(int=1), _FIRST, _DAYS, entries)
    for _ in write_logs(store, plan):
        pass
    days = [_FIRST + timedelta(days=number) for number in range(_DAYS)]
    return compact_days(store, plan.tenant_id, days, directory=directory)


def make_job(files: Sequence[DayFile], draft: tuple[Rule, ...], current: tuple[Rule, ...]) -> Job:
    return Job(files, files[1].day, files[-1].day, draft, current)


def run(work: Callable[[duckdb.DuckDBPyConnection, Job], object], job: Job) -> None:
    with duckdb.connect(config={"threads": 1}) as connection:
        work(connection, job)


def scan(files: Sequence[DayFile]) -> None:
    columns = ", ".join(f"max({quote_name(name)})" for name in _COLUMNS)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"SELECT {columns} FROM {_source(files)}").fetchall()


def _source(files: Sequence[DayFile]) -> str:
    return f"read_parquet({quote_texts(file.file for file in files)})"


def measure_others(files: Sequence[DayFile], rules: tuple[Rule, ...], *, turns: int) -> Compared:
    """Compare the p95 of a query with and without replays, in turn: their process stops and continues."""
    worker = multiprocessing.get_context("spawn").Process(
        target=replay_for_ever, args=(make_job(files, rules, rules),), daemon=True
    )
    worker.start()
    assert worker.pid is not None
    time.sleep(3)
    statement = f"SELECT matchedRule, count(*), max(standardizedSql) FROM {_source(files)} GROUP BY 1"
    taken: dict[signal.Signals, list[float]] = {signal.SIGSTOP: [], signal.SIGCONT: []}
    with duckdb.connect(config={"threads": 1}) as connection:
        for _ in range(turns):
            for turn, times in taken.items():
                os.kill(worker.pid, turn)
                time.sleep(0.05)
                times += [time_of(lambda: connection.execute(statement).fetchall()) for _ in range(15)]
    worker.kill()
    alone, beside = map(p95, taken.values())
    return Compared("p95 while replays run", beside, "none running", alone, 1.5)


def replay_for_ever(job: Job) -> None:
    # As the service does in the thread of a replay.
    os.nice(NICENESS)
    while True:
        run(replay, job)
