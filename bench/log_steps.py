"""The measured steps of `bench.bench_logs`. Needs Django to be set up."""

from __future__ import annotations

import multiprocessing
import shutil
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.files.base import ContentFile

from analytics.models import DayRollup
from analytics.summaries.day_rollup import write_rollups
from analytics.summaries.day_tables import DayTables
from analytics.summaries.days import find_stale_days, rebuild_day
from analytics.summaries.documents.day import day_document
from analytics.summaries.documents.opportunities import opportunities_document
from analytics.summaries.documents.rules import rules_document
from analytics.summaries.documents.year import daily_activity, year_document
from analytics.summaries.merge import MERGED_OPTIONS, merge_rollups
from analytics.summaries.rebuild import find_stale_periods, rebuild_period
from analytics.summaries.rollup_schema import ACTIVITY, RULES, STATEMENTS
from analytics.summaries.rollups import Rollups
from bench import harness, raw_logs
from logs.columns import COLUMNS
from logs.compaction.build import CompactedDay, compact_day
from logs.compaction.engine import ROW_GROUP_ROWS, connect
from logs.layout import DAY_MS, day_prefix
from logs.listing import UnlistedDay, list_day
from logs.models import Partition
from logs.quoting import quote_text, quote_texts
from tenantadmin.lib.objectstore import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duckdb import DuckDBPyConnection

TENANT = UUID("11111111-2222-4333-8444-555555555555")
DAY = date(2026, 3, 1)
#: The same format as compaction's files, with zstd at its default level.
_COPY_OPTIONS = f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3, ROW_GROUP_SIZE {ROW_GROUP_ROWS}"
_SCAN = "SELECT count(*), sum(responseSize) FROM read_parquet({files})"


@dataclass(frozen=True, slots=True)
class Row:
    """A measured step, a reference step, and the largest ratio that is the goal (None: there is no goal)."""

    work: str
    seconds: float
    reference: str
    reference_seconds: float
    goal: float | None

    def cells(self) -> list[object]:
        ratio = self.seconds / self.reference_seconds
        goal = "" if self.goal is None else self.goal
        return [self.work, self.seconds * 1000, self.reference, self.reference_seconds * 1000, ratio, goal]


def measure(directory: Path, *, entries: int, days: int, runs: int) -> list[Row]:
    """Measure all steps. Return the rows of the table."""
    ndjson = LocalStore(directory / "ndjson")
    raw_logs.write_ndjson(directory / "ndjson", tenant=TENANT, day=DAY, entries=entries)
    raw_logs.write_objects(directory / "objects", tenant=TENANT, day=DAY, entries=entries)
    rows = compaction(directory, ndjson=ndjson, objects=LocalStore(directory / "objects"), runs=runs)
    shutil.rmtree(directory / "objects")
    with connect(spill=directory / "spill") as connection:
        log = directory / f"built/day={DAY}/day.parquet"
        files: dict[str, Path] = {}
        rows += rollups(connection, log=log, runs=runs, files=files)
        rows += day_documents(connection, log=log, files=files, runs=runs)
        rows += year_documents(connection, log=log, files=files, days=days, runs=runs)
    return [*rows, *one_object(ndjson, days=days, runs=runs)]


def compaction(directory: Path, *, ndjson: LocalStore, objects: LocalStore, runs: int) -> list[Row]:
    """Compact a day's raw objects to Parquet, compared to the engine's COPY, which does not check or sort."""
    batches = [ndjson.uri(item.key) for item in list_day(ndjson, tenant=TENANT, day=DAY).entries]
    types = {column.name: column.type.value for column in COLUMNS}
    target_folder = directory / f"built/day={DAY}"
    folders = sorted((directory / "objects" / day_prefix(TENANT, DAY)).iterdir())
    concatenated = [directory / f"concatenated-{folder.name}.json" for folder in folders]

    def copy(files: Sequence[str]) -> None:
        # COPY converts or skips entries of a wrong type, which compaction quarantines.
        source = f"read_json({quote_texts(files)}, format = 'nd', columns = {types}, ignore_errors = true)"
        target = quote_text(directory / "copy.parquet")
        with connect(spill=directory / "spill") as connection:
            connection.execute(f"COPY (FROM {source}) TO {target} ({_COPY_OPTIONS})")

    def concatenate_and_copy() -> None:
        list(pool.map(raw_logs.concatenate, folders, concatenated))
        copy(list(map(str, concatenated)))

    def build(store: LocalStore) -> CompactedDay:
        shutil.rmtree(target_folder, ignore_errors=True)
        target_folder.mkdir(parents=True)
        return compact_day(store, UnlistedDay(TENANT, DAY), directory=target_folder)

    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        plain, compacted, concatenated_and_copied, single = alternate(
            runs,
            lambda: copy(batches),
            lambda: build(ndjson),
            concatenate_and_copy,
            lambda: build(objects),
        )
    for path in concatenated:
        path.unlink()
    return [
        Row("day of NDJSON to Parquet", compacted, "COPY of its files", plain, 1.2),
        Row("day of single objects", single, "the same as NDJSON", compacted, 1.6),
        Row("the same", single, "concatenated by two processes, then COPY", concatenated_and_copied, None),
    ]


def rollups(connection: DuckDBPyConnection, *, log: Path, runs: int, files: dict[str, Path]) -> list[Row]:
    """Write all rollups of a day, compared to passes over its rows for the records and the whole document."""

    seconds, records, whole = alternate(
        runs,
        lambda: files.update(write_rollups(log, day=DAY, directory=log.parent)),
        lambda: connection.execute(_raw_records(log)).fetchall(),
        lambda: [connection.execute(query).fetchall() for query in (_raw_records(log), _raw_hours(log))],
    )
    size = sum(path.stat().st_size for path in files.values())
    harness.console.print(f"rollups take {size / log.stat().st_size:.2f} of the Parquet's bytes; goal 0.6")
    return [
        Row("rollups of a day", seconds, "raw pass for the document's records", records, 1.5),
        Row("the same", seconds, "raw passes for the whole document", whole, 1.5),
    ]


def _raw_records(log: Path) -> str:
    statuses = ", ".join(
        f"count(*) FILTER (cacheStatus = '{name}')" for name in ("HIT", "MISS", "BYPASS", "PASSTHROUGH")
    )
    latest = ", ".join(
        f"arg_max_null({name}, file_row_number)"
        for name in ("cacheKey", "matchedRule", "cacheStatus", "statusCode", "responseSize")
    )
    return f"""
        SELECT md5(standardizedSql), any_value(standardizedSql), count(*), {statuses}, {latest},
            sum(responseTimeMs) FILTER (responseTimeMs > 0), count(*) FILTER (responseTimeMs > 0),
            sum(warehouseExecutionTimeMs), min(timestamp), max(timestamp), count(DISTINCT userName),
            bit_or(1::INTEGER << _hour::INTEGER)
        FROM read_parquet({quote_text(log)}, file_row_number = true) GROUP BY standardizedSql
    """


def _raw_hours(log: Path) -> str:
    """Return the query for the 24 hours and the totals, with distinct counts, from the rows."""
    hit, miss = "cacheStatus = 'HIT'", "cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')"
    times = ", ".join(
        f"sum(responseTimeMs) FILTER (responseTimeMs > 0 AND {which}), "
        f"count(*) FILTER (responseTimeMs > 0 AND {which})"
        for which in ("true", hit, miss)
    )
    return f"""
        SELECT _hour, count(*), count(*) FILTER ({hit}), count(*) FILTER ({miss}), {times},
            sum(responseSize) FILTER (responseSize > 0 AND {hit}),
            sum(responseSize) FILTER (responseSize > 0 AND cacheStatus IS DISTINCT FROM 'HIT'),
            min(responseTimeMs) FILTER (responseTimeMs > 0), max(responseTimeMs),
            count(DISTINCT userName), count(DISTINCT standardizedSql)
        FROM read_parquet({quote_text(log)}) GROUP BY GROUPING SETS ((_hour), ())
    """


def day_documents(
    connection: DuckDBPyConnection, *, log: Path, files: Mapping[str, Path], runs: int
) -> list[Row]:
    """Make the documents of a day, of the tenant and of one user, compared to a scan of the day."""

    scanned, tenant, user = alternate(
        runs * 3,
        lambda: connection.execute(_SCAN.format(files=quote_text(log))).fetchall(),
        lambda: b"".join(day_document(DayTables(files))),
        lambda: b"".join(day_document(DayTables(files, user="user-7@example.net"))),
    )
    return [
        Row("day document", tenant, "scan of the day", scanned, 5),
        Row("day document of one user", user, "scan of the day", scanned, 2),
    ]


def year_documents(
    connection: DuckDBPyConnection, *, log: Path, files: Mapping[str, Path], days: int, runs: int
) -> list[Row]:
    """Make documents from merged tables, and merge them, compared to a scan of the year.

    Every day is a copy of the measured day with another date.
    """

    logs: list[Path] = []
    months: dict[int, list[dict[str, str]]] = {}
    texts: dict[date, str] = {}
    for day in (date(2026, 1, 1) + timedelta(offset) for offset in range(days)):
        directory = log.parent.parent / f"year/day={day}"
        directory.mkdir(parents=True)
        (directory / log.name).hardlink_to(log)
        logs.append(directory / log.name)
        part = _copy_rollups(connection, files, day=day, directory=directory)
        months.setdefault(day.month, []).append(part)
        texts[day] = part[STATEMENTS]

    def merge(name: str, parts: Sequence[Mapping[str, str]]) -> dict[str, str]:
        directory = log.parent.parent / f"year/{name}"
        directory.mkdir(exist_ok=True)
        merged = merge_rollups(connection, parts, directory=directory)
        return {table: str(path) for table, path in merged.items()}

    merged = [merge(f"{month}", parts) for month, parts in months.items()]
    year = [merge("year", merged)]

    def year_json() -> dict[str, Any]:
        rollups = Rollups(connection, year)
        return year_document(rollups, tenant=TENANT, year=2026, activity=daily_activity(rollups))

    scanned, yearly, rules, opportunities, remerged = alternate(
        runs,
        lambda: connection.execute(_SCAN.format(files=quote_texts(logs))).fetchall(),
        year_json,
        lambda: rules_document(Rollups(connection, year)),
        lambda: opportunities_document(Rollups(connection, year), text_file=lambda day: texts[day]),
        lambda: (merge("1", months[1]), merge("year", merged)),
    )
    names = {"year document": yearly, "rules of a year": rules, "opportunities of a year": opportunities}
    return [
        *(Row(name, seconds, f"scan of {days} days", scanned, 0.1) for name, seconds in names.items()),
        Row("merging a month and the year", remerged, f"scan of {days} days", scanned, None),
    ]


def _copy_rollups(
    connection: DuckDBPyConnection, files: Mapping[str, Path], *, day: date, directory: Path
) -> dict[str, str]:
    """Copy the measured day's rollups to another date, with the timestamps of that day."""
    shift = (day - DAY).days * DAY_MS
    for table, path in files.items():
        target = directory / path.name
        changed = {
            STATEMENTS: f"latest_timestamp + {shift} AS latest_timestamp, DATE '{day}' AS latest_day",
            RULES: f"latest_timestamp + {shift} AS latest_timestamp, DATE '{day}' AS latest_day",
            ACTIVITY: f"DATE '{day}' AS day",
        }.get(table)
        if changed is None:
            target.hardlink_to(path)
            continue
        query = (
            f"SELECT * REPLACE ({changed}) FROM read_parquet({quote_text(path)}, hive_partitioning = false)"
        )
        connection.execute(f"COPY ({query}) TO {quote_text(target)} ({MERGED_OPTIONS})")
    return {table: str(directory / path.name) for table, path in files.items()}


def one_object(store: LocalStore, *, days: int, runs: int) -> list[Row]:
    """Update all documents after one new object, compared to only the build of its day."""

    rebuild_day(store, tenant=TENANT, day=DAY)
    partition = Partition.objects.get(tenant_id=TENANT, day=DAY)
    rollup = DayRollup.objects.get(tenant_id=TENANT, day=DAY)
    with connect(spill=Path(store.uri("spill"))) as connection:
        for offset in range(1, days):
            day = DAY - timedelta(offset)
            _repeat_day(connection, store, day=day, partition=partition, rollup=rollup)
    _refresh_periods(store)
    alone, current = [], []
    for number in range(runs):
        line = next(iter(raw_logs.make_lines(day=DAY, entries=1, seed=number)))[2]
        store.save(f"{day_prefix(TENANT, DAY)}12/new-{number}.json", ContentFile(line))
        start = time.perf_counter()
        stale = find_stale_days(store, tenant=TENANT)
        assert stale == [DAY], stale
        found = time.perf_counter()
        rebuild_day(store, tenant=TENANT, day=DAY)
        built = time.perf_counter()
        _refresh_periods(store)
        alone.append(built - found)
        current.append(time.perf_counter() - start)
    work = f"one new object, {days} days stored"
    return [
        Row(work, statistics.median(current), "build of that day", statistics.median(alone), 1.5),
    ]


def _repeat_day(
    connection: DuckDBPyConnection,
    store: LocalStore,
    *,
    day: date,
    partition: Partition,
    rollup: DayRollup,
) -> None:
    """Copy the measured day to another date: its files, and its rows in the database."""
    store.save(f"{day_prefix(TENANT, day)}00/all.json", ContentFile(b"{}"))
    key = {name: file.replace(DAY.isoformat(), day.isoformat()) for name, file in rollup.files.items()}
    directory = Path(store.uri(key[STATEMENTS])).parent
    directory.mkdir(parents=True)
    files = {name: Path(store.uri(file)) for name, file in rollup.files.items()}
    _copy_rollups(connection, files, day=day, directory=directory)
    fields = {"build": rollup.build, "version": rollup.version, "bytes": rollup.bytes}
    DayRollup.objects.create(tenant_id=TENANT, day=day, files=key, **fields)
    copied_fields = ("build", "file", "rows", "bytes", "objects_read", "duplicates", "quarantined")
    Partition.objects.create(
        tenant_id=TENANT,
        day=day,
        listing_digest=list_day(store, tenant=TENANT, day=day).digest,
        **{name: getattr(partition, name) for name in copied_fields},
    )


def _refresh_periods(store: LocalStore) -> None:
    for period in find_stale_periods(tenant=TENANT):
        rebuild_period(store, tenant=TENANT, period=period)


def alternate(runs: int, *steps: Callable[[], object]) -> Sequence[float]:
    """Return the median seconds of each step. The steps run in turn, so that other load slows all of them."""
    durations: list[list[float]] = [[] for _ in steps]
    for _ in range(runs):
        for seconds, step in zip(durations, steps, strict=True):
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds) for seconds in durations]
