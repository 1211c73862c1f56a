"""From raw logs to summaries: each step beside the least that its kind of work can cost."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from django.core.files.base import ContentFile

from analytics.numbers.days import find_stale_days, rebuild_day
from analytics.numbers.documents import day_document
from analytics.numbers.periods import find_stale_periods, rebuild_period
from analytics.numbers.rollup import write_rollups
from analytics.numbers.tables import DayTables
from analytics.numbers.users import find_user_source, user_document
from analytics.reports.activity import StatementFilter, list_statements
from bench import raw_logs
from bench.harness import Compared, medians_in_turn, show, time_of
from logs.columns import COLUMNS
from logs.compaction.build import CompactedDay, compact_day
from logs.compaction.writer import ROW_GROUP_ROWS, connect
from logs.definitions import HIT, MISS, REQUEST, SIZED, TIMED, WAREHOUSE_TIME, hash_sql
from logs.layout import day_prefix, list_day
from logs.models import Partition
from logs.quoting import quote_text, quote_texts
from logs.sources import local_paths
from tenantadmin.lib.objectstore import LocalStore, default_store

#: The last of all measured days, which are in one year.
DAY = date(2026, 12, 30)
TENANT, LARGE, ONE_HOUR = (UUID(int=number) for number in (1, 2, 3))
USER = "user-7@example.net"
NEW_HOUR = 12
#: What counts as a request.
#: The format of compaction's files.
_COPY_OPTIONS = f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3, ROW_GROUP_SIZE {ROW_GROUP_ROWS}"


def main(
    directory: Path, *, entries: int = 50_000, days: int = 30, large: int = 200_000, runs: int = 3
) -> None:
    rows = measure_compaction(directory, entries=entries, runs=runs)
    rows += measure_day(directory, runs=runs)
    rows += measure_history(directory, entries=entries, days=days, runs=runs)
    show(f"Logs to numbers: {entries:,} entries a day, {days} days", "ms", rows)
    row = measure_large_day(directory, entries=large, runs=runs)
    show(f"A day of {large:,} entries by hours: processor time", "ms", [row])


def measure_compaction(directory: Path, *, entries: int, runs: int) -> list[Compared]:
    """Compact a day's raw objects to Parquet, beside the engine's COPY, which does not check or sort."""
    ndjson, objects = LocalStore(directory / "ndjson"), LocalStore(directory / "single")
    raw_logs.write_ndjson(directory / "ndjson", tenant=TENANT, day=DAY, entries=entries)
    raw_logs.write_objects(directory / "single", tenant=TENANT, day=DAY, entries=entries)
    files = [ndjson.uri(item.key) for item in list_day(ndjson, tenant=TENANT, day=DAY).entries]
    types = {column.name: column.type.value for column in COLUMNS}
    target = directory / "built"

    def copy() -> None:
        # COPY converts or skips entries of a wrong type, which compaction quarantines.
        source = f"read_json({quote_texts(files)}, format = 'nd', columns = {types}, ignore_errors = true)"
        with connect(spill=directory / "spill") as connection:
            connection.execute(
                f"COPY (FROM {source}) TO {quote_text(directory / 'copy.parquet')} ({_COPY_OPTIONS})"
            )

    def build(store: LocalStore) -> CompactedDay:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        return compact_day(store, list_day(store, tenant=TENANT, day=DAY), directory=target)

    single, copied, compacted = medians_in_turn(
        partial(build, objects), copy, partial(build, ndjson), runs=runs
    )
    shutil.rmtree(directory / "single")
    return [
        Compared("day of NDJSON to Parquet", compacted, "COPY of its files", copied, 1.2),
        Compared("day of single objects", single, "the same as NDJSON", compacted, 3),
    ]


def measure_day(directory: Path, *, runs: int) -> list[Compared]:
    """Roll up a day and make its documents, beside queries over its rows."""
    log = directory / "built/day.parquet"
    files: dict[str, Path] = {}
    with connect(spill=directory / "spill") as connection:

        def query(*statements: str) -> None:
            for statement in statements:
                connection.execute(statement).fetchall()

        rolled, passed = medians_in_turn(
            lambda: files.update(write_rollups(log, day=DAY, directory=log.parent)),
            lambda: query(_raw_records(log), _raw_hours(log)),
            runs=runs,
        )
        made, made_of_user, scanned = medians_in_turn(
            lambda: b"".join(day_document(DayTables(files))),
            lambda: b"".join(day_document(DayTables(files, user=USER))),
            lambda: query(_scan([log])),
            runs=3 * runs,
        )
    return [
        Compared("all rollups of a day", rolled, "raw passes for the day document", passed, 1.5),
        Compared("day document", made, "scan of the day", scanned, 5),
        Compared("day document of one user", made_of_user, "scan of the day", scanned, 2),
    ]


def measure_history(directory: Path, *, entries: int, days: int, runs: int) -> list[Compared]:
    """Make a user's year from stored rollups, and bring all documents up to date after one new object."""
    store = default_store()
    for offset in range(days):
        day = DAY - timedelta(offset)
        raw_logs.write_ndjson(directory / "objects", tenant=TENANT, day=day, entries=entries)
        rebuild_day(store, tenant=TENANT, day=day)
    refresh_periods()
    keys = Partition.objects.order_by("-day").values_list("file", flat=True)
    logs = list(map(Path, local_paths(store, keys)))

    def make_year() -> None:
        source = find_user_source(tenant=TENANT, user=USER, period=f"{DAY:%Y}")
        assert source is not None
        cache.clear()
        assert user_document(store, source)

    last_days = min(days, 31)
    first = DAY - timedelta(last_days - 1)
    list_them = partial(
        list_statements, store, tenant=TENANT, first=first, last=DAY, order="warehouse", limit=100
    )
    # A day is a file.
    raw = _raw_statements(logs[:last_days])
    with connect(spill=directory / "spill") as connection:
        made, scanned = medians_in_turn(
            make_year, lambda: connection.execute(_scan(logs)).fetchall(), runs=3 * runs
        )
        listed, found, passed = medians_in_turn(
            lambda: list_them(matching=StatementFilter()),
            lambda: list_them(matching=StatementFilter(statement="TABLE_17")),
            lambda: connection.execute(raw).fetchall(),
            runs=3 * runs,
        )
    current, alone = [], []
    for number in range(runs):
        put_new_object(TENANT, number)
        start = time.perf_counter()
        assert find_stale_days(store, tenant=TENANT) == [DAY]
        alone.append(time_of(lambda: rebuild_day(store, tenant=TENANT, day=DAY)))
        refresh_periods()
        current.append((time.perf_counter() - start) * 1000)
    return [
        Compared("year document of one user", made, f"scan of {days} days", scanned),
        Compared(f"statements of {last_days} days", listed, "the same from their log", passed, 1),
        Compared("the same, with a part of the text", found, "all from their log", passed, 1),
        Compared("all documents, one new object", median(current), "build of its day", median(alone), 1.5),
    ]


def measure_large_day(directory: Path, *, entries: int, runs: int) -> Compared:
    """Build a day by hours again after one new object, beside its hour as a day of one file."""
    store = default_store()
    objects = directory / "objects"
    raw_logs.write_ndjson(objects, tenant=LARGE, day=DAY, entries=entries)
    hour, copied = (objects / f"{day_prefix(tenant, DAY)}{NEW_HOUR}" for tenant in (LARGE, ONE_HOUR))
    shutil.copytree(hour, copied)

    def build(tenant: UUID, *, by_hours: bool) -> float:
        settings.BUILD_BY_HOURS_BYTES = 1 if by_hours else 1 << 60
        return time_of(lambda: rebuild_day(store, tenant=tenant, day=DAY), time.process_time)

    build(LARGE, by_hours=True)
    again, alone = [], []
    for number in range(runs):
        put_new_object(LARGE, number)
        again.append(build(LARGE, by_hours=True))
        # So that all objects are read.
        Partition.objects.filter(tenant_id=ONE_HOUR).delete()
        alone.append(build(ONE_HOUR, by_hours=False))
    return Compared("one new object", median(again), "its hour as a day of one file", median(alone), 1.5)


def put_new_object(tenant: UUID, number: int) -> None:
    """Store an entry of the hour ``NEW_HOUR``."""
    lines = raw_logs.make_lines(day=DAY, entries=1_000, seed=100 + number)
    line = next(line for hour, _, line in lines if hour == NEW_HOUR)
    default_store().save(f"{day_prefix(tenant, DAY)}{NEW_HOUR}/new-{number}.json", ContentFile(line))


def refresh_periods() -> None:
    for period in find_stale_periods(tenant=TENANT):
        rebuild_period(default_store(), tenant=TENANT, period=period)


def _scan(logs: Sequence[Path]) -> str:
    return f"SELECT count(*), sum(responseSize) FROM read_parquet({quote_texts(logs)})"


def _raw_statements(logs: Sequence[Path]) -> str:
    statuses = ", ".join(f"count(*) FILTER (cacheStatus = '{name}')" for name in REQUEST)
    return f"""
        SELECT standardizedSql, count(*), {statuses}, avg(responseTimeMs),
            {WAREHOUSE_TIME} AS ms, arg_max_null(matchedRule, timestamp),
            arg_max_null(cacheStatus, timestamp),
            arg_max_null(responseSize, timestamp), min(timestamp), max(timestamp)
        FROM read_parquet({quote_texts(logs)}) GROUP BY ALL ORDER BY ms DESC NULLS LAST LIMIT 100
    """


def _raw_records(log: Path) -> str:
    statuses = ", ".join(f"count(*) FILTER (cacheStatus = '{name}')" for name in REQUEST)
    latest = ", ".join(
        f"arg_max_null({name}, file_row_number)"
        for name in ("cacheKey", "matchedRule", "cacheStatus", "statusCode", "responseSize")
    )
    return f"""
        SELECT {hash_sql()}, any_value(standardizedSql), count(*), {statuses}, {latest},
            sum(responseTimeMs) FILTER ({TIMED}), count(*) FILTER ({TIMED}),
            {WAREHOUSE_TIME}, min(timestamp), max(timestamp), count(DISTINCT userName),
            bit_or(1::INTEGER << _hour::INTEGER)
        FROM read_parquet({quote_text(log)}, file_row_number = true) GROUP BY standardizedSql
    """


def _raw_hours(log: Path) -> str:
    """Return the query for the 24 hours and the totals, with distinct counts, from the rows."""
    times = ", ".join(
        f"sum(responseTimeMs) FILTER ({TIMED} AND {which}), count(*) FILTER ({TIMED} AND {which})"
        for which in ("true", HIT, MISS)
    )
    return f"""
        SELECT _hour, count(*), count(*) FILTER ({HIT}), count(*) FILTER ({MISS}), {times},
            sum(responseSize) FILTER ({SIZED} AND {HIT}),
            sum(responseSize) FILTER ({SIZED} AND {HIT.others}),
            min(responseTimeMs) FILTER ({TIMED}), max(responseTimeMs),
            count(DISTINCT userName), count(DISTINCT standardizedSql)
        FROM read_parquet({quote_text(log)}) GROUP BY GROUPING SETS ((_hour), ())
    """
