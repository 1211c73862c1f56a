"""Compact and roll up raw files with the service's own code, without a database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

import duckdb

from analytics.numbers.documents import day_document
from analytics.numbers.merged import Rollups, merge_rollups
from analytics.numbers.rollup import write_rollups
from analytics.numbers.tables import DayTables
from logs.compaction.build import CompactedDay, compact_day
from logs.listing import list_day
from tenantadmin.lib.objectstore import LocalStore
from tests.objects import save_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date
    from pathlib import Path

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
