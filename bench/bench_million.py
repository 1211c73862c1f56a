"""A tenant of a million entries a day: digests, alerts, savings, a replay and a search, with their memory.

The days are one day of the demo, copied and shifted in time. Each work runs in a process of its own, as in a
child of a worker, and may take ``seconds`` at most.
"""

# Queries consist of constants, times and paths of this program.

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings

from analytics.advice.mine import mine
from analytics.demo.logs import LogPlan, compact_days, read_demo, write_logs
from analytics.models import DayRollup
from analytics.numbers.executions import EXECUTIONS, keep_sql
from analytics.numbers.store import new_engine, replay_engine
from analytics.numbers.tables import ROLLUP_VERSION
from analytics.replay.execution import day_files
from analytics.replay.load import Job
from analytics.replay.replayer import replay
from analytics.replay.sample import Sampling
from analytics.reports.savings import find_source, forget, read_savings
from analytics.watch.alert_kinds import BASE_DAYS, KINDS, alert_sql
from analytics.watch.facts import LOOK_BACK_DAYS, Changes, DigestPeriod
from analytics.watch.reading import LogDay, open_log
from analytics.words.sections import make_document
from bench.harness import console, measure_apart
from logs.audit import Reader
from logs.layout import DAY_MS, partition_key, rollup_key
from logs.models import Partition
from logs.partitions import partitions_with_file
from logs.quoting import quote_text
from logs.sources import local_paths
from logs.sql.view import LogView
from rules.language import read_rules
from rules.tables.warehouse import ANY_TABLES
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import LocalStore, default_store

if TYPE_CHECKING:
    from rules.language import Rule
    from tenantadmin.lib.objectstore import ObjectStore

_TENANT: Final = UUID(int=1)
#: A Monday. The week that ends with the last day is a whole one.
_FIRST: Final = date(2026, 3, 2)
#: So many copies of each generated entry.
_COPIES: Final = 16
#: Name, function and its further arguments.
_WORKS: Final = (
    ("digest of a day", "make_digest", "day"),
    ("digest of a week", "make_digest", "week"),
    ("alert hit-rate-fell", "read_alert", "hit-rate-fell"),
    ("alert savings-fell", "read_alert", "savings-fell"),
    ("alert leak", "read_alert", "leak"),
    ("savings of 28 days", "compute_savings"),
    ("replay of 7 days", "replay_week"),
    ("search for recommendations", "search"),
)


def main(directory: Path, *, entries: int = 1_000_000, days: int = 35, seconds: int = 600) -> None:
    taken = _write(directory, entries=entries, days=days)
    console.print(f"{days} days of {entries:,} entries: s, processor s, peak MB, MB afterwards")
    console.print(f"{'what the bill needs of a day, kept by its build':50}{taken:>12,.1f}")
    for name, work, *arguments in _WORKS:
        figures = measure_apart(__name__, work, _FIRST + timedelta(days - 1), *arguments, seconds=seconds)
        console.print(f"{name:50}" + "".join(f"{figure:>12}" for figure in figures))


def _write(directory: Path, *, entries: int, days: int) -> float:
    """Write the days as builds leave them. Return the mean seconds that keeping the executions took."""
    raw, store = LocalStore(directory / "raw"), default_store()
    plan = LogPlan(read_demo().profiles[0], _TENANT, _FIRST, 1, entries // _COPIES)
    for _ in write_logs(raw, plan):
        pass
    (day_file,) = compact_days(raw, _TENANT, [_FIRST], directory=directory)
    common: dict[str, Any] = {"objects_read": 24, "duplicates": 0, "quarantined": 0, "built_at": now()}
    taken = 0.0
    with new_engine(memory_limit="4GB") as engine:
        execute = engine.connection.execute
        execute(
            "CREATE TABLE base AS SELECT * EXCLUDE (copy) REPLACE (timestamp + 13 * copy AS timestamp, "
            "logId || '-' || copy AS logId) FROM (SELECT *, unnest(range("
            f"{_COPIES})) AS copy FROM read_parquet({quote_text(day_file.file)}, hive_partitioning = false)) "
            "ORDER BY timestamp, logId"
        )
        for number in range(days):
            day, shift = _FIRST + timedelta(number), number * DAY_MS
            keys = [
                partition_key(_TENANT, day, build="b"),
                rollup_key(_TENANT, day, build="b", table=EXECUTIONS),
            ]
            log, kept = (directory / f"{name}.parquet" for name in ("shifted", "kept"))
            execute(
                f"COPY (SELECT * REPLACE (timestamp + {shift} AS timestamp, cacheExpiresAt + {shift} AS "
                f"cacheExpiresAt) FROM base) TO {quote_text(str(log))} (COMPRESSION zstd)"
            )
            _save(store, keys[0], log)
            LogView(engine.connection).make_tolerant(local_paths(store, keys[:1]))
            began_at = time.perf_counter()
            execute(f"COPY ({keep_sql(day)}) TO {quote_text(str(kept))}")
            taken += time.perf_counter() - began_at
            _save(store, keys[1], kept)
            where: dict[str, Any] = {"tenant_id": _TENANT, "day": day, "build": "b"}
            Partition.objects.create(file=keys[0], rows=entries, bytes=1, **where, **common)
            DayRollup.objects.create(version=ROLLUP_VERSION, files={EXECUTIONS: keys[1]}, bytes=1, **where)
    shutil.rmtree(directory / "raw")
    return taken / days


def _save(store: ObjectStore, key: str, path: Path) -> None:
    with path.open("rb") as stream:
        store.save(key, stream)


def make_digest(last: date, kind: str) -> object:
    period = DigestPeriod.with_day(last) if kind == "week" else DigestPeriod.of_day(last)
    with open_log(default_store(), _log_days(period.first, last, before=LOOK_BACK_DAYS)) as log:
        return make_document(log, period, Changes())


def read_alert(last: date, kind: str) -> object:
    window = KINDS[kind]
    hours = window.window or 24
    first = last if window.window_unit == "days" else last - timedelta(BASE_DAYS + -(-hours // 24))
    with open_log(default_store(), _log_days(first, last, before=0)) as log:
        return log.rows(alert_sql(kind, first=first, last=last, hours=hours, now_ms=0))


def _log_days(first: date, last: date, *, before: int) -> Sequence[LogDay]:
    rows = partitions_with_file(tenant=_TENANT).filter(day__range=(first - timedelta(before), last))
    return [LogDay(row.day, row.build, row.files) for row in rows]


def compute_savings(last: date) -> object:
    source = find_source(tenant=_TENANT, first=last - timedelta(27), last=last, step="day")
    forget(source)
    return read_savings(default_store(), source, reader=Reader("bench@example.org", ""))


def replay_week(last: date) -> object:
    rules = read_rules(read_demo().profiles[0].rules)
    with replay_engine() as engine:
        return replay(engine.connection, _make_job(last, rules))


def search(last: date) -> object:
    documents = read_demo().profiles[0].rules
    job = _make_job(last, read_rules(documents))
    with replay_engine() as engine:
        return mine(engine.connection, job, documents=documents, tables=ANY_TABLES, dismissed={})


def _make_job(last: date, rules: tuple[Rule, ...]) -> Job:
    first, store = last - timedelta(6), default_store()
    days = _log_days(first, last, before=1)
    return Job(
        day_files(store, ((day.day, day.files) for day in days)),
        first,
        last,
        rules,
        rules,
        sampling=Sampling("bench", most=settings.REPLAY_EXACT_ROWS // 2),
    )
