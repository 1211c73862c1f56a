"""Logs for tests, and builds of them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb

from analytics.models import DayRollup, Kind, MergedRollup, SummaryDocument
from analytics.numbers.days import find_stale_days, rebuild_day
from analytics.numbers.documents import day_document
from analytics.numbers.merged import Rollups, merge_rollups
from analytics.numbers.periods import find_stale_periods, rebuild_period
from analytics.numbers.rollup import write_rollups
from analytics.numbers.store import read_document
from analytics.numbers.tables import DayTables
from logs.columns import CACHE_STATUSES
from logs.compaction.build import CompactedDay, compact_day
from logs.layout import day_prefix, day_start_ms, list_day
from logs.models import Partition, SupersededFile
from tenantadmin.lib.objectstore import LocalStore, ObjectStore, default_store
from tests.analytics import oracle
from tests.objects import read_object, save_entries, save_object

#: The files of a rollup by table.
Part = Mapping[str, str]

TENANT = UUID("11111111-2222-4333-8444-555555555555")


def store_files(root: Path, days: Mapping[date, Mapping[str, bytes]]) -> LocalStore:
    """Return a store with the files ``HH/<name>.json`` of each day."""
    store = LocalStore(root)
    for day, files in days.items():
        for name, body in files.items():
            save_object(store, f"{TENANT}/logs/{day:%Y/%m/%d}/{name}", body)
    return store


def roll_day(store: LocalStore, day: date, *, directory: Path) -> tuple[CompactedDay, Part | None]:
    """Compact and roll up one day under ``directory``."""
    day_directory = directory / f"day={day.isoformat()}"
    day_directory.mkdir(parents=True)
    compacted = compact_day(store, list_day(store, tenant=TENANT, day=day), directory=day_directory)
    if compacted.file is None:
        return compacted, None
    return compacted, _texts(write_rollups(compacted.file, day=day, directory=day_directory))


def merge(parts: Sequence[Part], *, directory: Path) -> Part:
    """Merge the rollups of days or months under ``directory``."""
    directory.mkdir(parents=True)
    with engine().cursor() as connection:
        return _texts(merge_rollups(connection, parts, directory=directory))


def merge_year(days: Mapping[date, Part], *, directory: Path) -> Part:
    """Merge the days of a year by month, and the months."""
    months: dict[int, list[Part]] = {}
    for day, part in sorted(days.items()):
        months.setdefault(day.month, []).append(part)
    merged = [merge(parts, directory=directory / f"{month:02}") for month, parts in months.items()]
    return merge(merged, directory=directory / "year")


@cache
def engine() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB that all tests share: opening one takes longer than most queries here."""
    return duckdb.connect(config={"threads": 1})


@contextmanager
def opened(*parts: Part, user: str | None = None) -> Iterator[Rollups]:
    """Open rollups in a DuckDB session of their own."""
    with engine().cursor() as connection:
        yield Rollups(connection, parts, user=user)


def day_json(part: Part, *, user: str | None = None) -> Any:
    """Return the daily document, or None if there is no log entry."""
    body = b"".join(day_document(DayTables(part, user=user)))
    return json.loads(body) if body else None


def _texts(files: Mapping[str, Path]) -> Part:
    return {table: str(path) for table, path in files.items()}


#: A rule with negative times: 2 hits x the mean of -1, -1 and -2 is -2.67.
NEGATIVE = (("HIT", 5), ("HIT", None), ("MISS", -1), ("MISS", -1), ("MISS", -2))
USERS = ("Ana", "Bo", "Zoë")
DAYS = (date(2026, 3, 1), date(2026, 3, 17), date(2026, 5, 2))


def random_entries(chance: random.Random, day: date) -> list[dict[str, Any]]:
    """Return entries with all statuses and with statements for each list of opportunities.

    Each logId is unique, and each timestamp is in the day.
    """
    own = [
        {
            "timestamp": day_start_ms(day) + number,
            "logId": f"r3-{number}",
            "cacheStatus": status,
            "matchedRule": "r3",
            "warehouseExecutionTimeMs": time,
        }
        for number, (status, time) in enumerate(NEGATIVE if day == DAYS[0] else ())
    ]
    return own + [
        {
            "timestamp": day_start_ms(day) + 1000 * chance.randrange(86_400),
            "logId": f"{chance.getrandbits(64):016x}",
            "userName": chance.choice([None, *USERS]),
            "standardizedSql": chance.choice([None, *(f"SELECT {n} -- ü" for n in range(12))]),
            "cacheStatus": chance.choice([None, *CACHE_STATUSES, "HIT", *["MISS", "PASSTHROUGH"] * 4]),
            "cacheKey": chance.choice([None, "k1", "k2", "k3"]),
            "matchedRule": chance.choice([None, "r1", "r2"]),
            "matchedRuleName": chance.choice([None, "One", "Two"]),
            "statusCode": chance.choice([None, 200, 500]),
            "responseSize": chance.choice([None, -1, 0, 1, 1000, 2**40]),
            "responseTimeMs": chance.choice([None, 0, 1, 2, 15, 999]),
            "warehouseExecutionTimeMs": chance.choice([None, 0, 3, 2**31 - 1, -1, -8]),
        }
        for _ in range(400)
    ]


DAY, NEXT, LATER = date(2025, 12, 31), date(2026, 1, 1), date(2026, 3, 5)

COMPARED_DOCUMENTS = (
    (Kind.DAY, "2025-12-31"),
    (Kind.MONTH, "2025-12"),
    (Kind.YEAR, "2025"),
    (Kind.RULES, "2025"),
    (Kind.YEAR, "2026"),
    (Kind.USERS, ""),
)


def entry(day: date, **fields: Any) -> dict[str, Any]:
    return {
        "timestamp": day_start_ms(day) + 1000,
        "userName": "Ana",
        "standardizedSql": "SELECT ?",
        "cacheStatus": "MISS",
        "cacheKey": "k",
        "responseSize": 10,
        "responseTimeMs": 5,
        **fields,
    }


def put(name: str, *entries: Any, day: date = DAY) -> None:
    save_entries(TENANT, day, entries, name=name)


def put_days() -> None:
    for day in (DAY, NEXT, LATER):
        put("00/a.json", entry(day, matchedRule="r"), day=day)


def rebuild_all() -> tuple[list[date], list[str]]:
    store = default_store()
    days = find_stale_days(store, tenant=TENANT)
    for day in days:
        assert rebuild_day(store, tenant=TENANT, day=day)
    periods = find_stale_periods(tenant=TENANT)
    for period in periods:
        assert rebuild_period(store, tenant=TENANT, period=period)
    return days, periods


def refresh(store: ObjectStore, *, wait: bool = False) -> None:
    for day in find_stale_days(store, tenant=TENANT):
        rebuild_day(store, tenant=TENANT, day=day, wait=wait)
    for period in find_stale_periods(tenant=TENANT):
        rebuild_period(store, tenant=TENANT, period=period, wait=wait)


def find_stale() -> tuple[list[date], list[str]]:
    return find_stale_days(default_store(), tenant=TENANT), find_stale_periods(tenant=TENANT)


def document(kind: Kind, period: str) -> Any:
    stored = read_document(tenant=TENANT, kind=kind, period=period)
    if stored is None:
        return None
    return json.loads(read_object(default_store(), stored.file) if stored.file else stored.body)


def rows_of(*days: date) -> list[oracle.Row]:
    store = default_store()
    rows: list[oracle.Row] = []
    for day in days:
        files = {item.key: read_object(store, item.key) for item in store.list(day_prefix(TENANT, day))}
        rows += oracle.read_day(files, day)
    return rows


def expected(rows: list[oracle.Row]) -> dict[tuple[Kind, str], Any]:
    tenant = str(TENANT)
    of_day = [row for row in rows if row["day"] == "2025-12-31"]
    return {
        (Kind.DAY, "2025-12-31"): oracle.day_document(of_day),
        (Kind.MONTH, "2025-12"): oracle.month_document(of_day, 12),
        (Kind.YEAR, "2025"): oracle.year_document(rows, tenant=tenant, year=2025),
        (Kind.RULES, "2025"): oracle.rules_document(of_day),
        (Kind.YEAR, "2026"): oracle.year_document(rows, tenant=tenant, year=2026),
        (Kind.USERS, ""): oracle.users_document(rows, tenant=tenant)["users"],
    }


def stored_documents() -> dict[tuple[Kind, str], Any]:
    documents = {(kind, period): document(kind, period) for kind, period in COMPARED_DOCUMENTS}
    documents[Kind.USERS, ""] = documents[Kind.USERS, ""]["users"]
    return documents


def assert_no_orphans() -> None:
    """Assert that the database names every object under the prefixes of builds."""
    named = set(Partition.objects.values_list("file", flat=True))
    named |= set(SupersededFile.objects.values_list("key", flat=True))
    named |= set(SummaryDocument.objects.exclude(file="").values_list("file", flat=True))
    for model in (DayRollup, MergedRollup):
        for files in model.objects.values_list("files", flat=True):
            named |= set(files.values())
    stored = {
        item.key
        for prefix in ("compacted", "rollups")
        for item in default_store().list(f"{TENANT}/{prefix}/")
    }
    assert stored == named
