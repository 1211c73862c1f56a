"""Raw files through the service's own compaction and rollups, without a database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

import duckdb

from analytics.summaries.daytables import DayTables
from analytics.summaries.documents.day import day_document
from analytics.summaries.merge import merge_rollups
from analytics.summaries.rollup import write_rollups
from analytics.summaries.source import Rollups
from logs.compaction.build import CompactedDay, compact_day
from logs.listing import list_day
from tenantadmin.objectstore import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date
    from pathlib import Path

#: Where the file of each table of a rollup is.
Part = Mapping[str, str]

TENANT = UUID("11111111-2222-4333-8444-555555555555")


def store_files(root: Path, days: Mapping[date, Mapping[str, bytes]]) -> LocalStore:
    """A store that holds ``HH/<name>.json`` of each day."""
    store = LocalStore(root)
    for day, files in days.items():
        for name, body in files.items():
            store.write(f"{TENANT}/logs/{day:%Y/%m/%d}/{name}", body)
    return store


def roll_day(store: LocalStore, day: date, *, directory: Path) -> tuple[CompactedDay, Part | None]:
    """Compact and roll up one day under ``directory``."""
    place = directory / f"day={day.isoformat()}"
    place.mkdir(parents=True)
    compacted = compact_day(store, list_day(store, tenant=TENANT, day=day), directory=place)
    if compacted.file is None:
        return compacted, None
    return compacted, _texts(write_rollups(compacted.file, day=day, directory=place))


def merge(parts: Sequence[Part], *, directory: Path) -> Part:
    """The rollups of days, or of months, merged under ``directory``."""
    directory.mkdir(parents=True)
    with engine().cursor() as connection:
        return _texts(merge_rollups(connection, parts, directory=directory))


def merge_year(days: Mapping[date, Part], *, directory: Path) -> Part:
    """The days of a year merged by month, the months merged."""
    months: dict[int, list[Part]] = {}
    for day, part in sorted(days.items()):
        months.setdefault(day.month, []).append(part)
    merged = [merge(parts, directory=directory / f"{month:02}") for month, parts in months.items()]
    return merge(merged, directory=directory / "year")


@cache
def engine() -> duckdb.DuckDBPyConnection:
    """One for all, since a new one takes longer than most of what is asked of it here."""
    return duckdb.connect(config={"threads": 1})


@contextmanager
def opened(*parts: Part, user: str | None = None) -> Iterator[Rollups]:
    """Rollups on a session of their own."""
    with engine().cursor() as connection:
        yield Rollups(connection, parts, user=user)


def day_json(part: Part, *, user: str | None = None) -> Any:
    """The daily document, read from the pieces it goes out in; None where there is none."""
    body = b"".join(day_document(DayTables(part, user=user)))
    return json.loads(body) if body else None


def _texts(files: Mapping[str, Path]) -> Part:
    return {table: str(path) for table, path in files.items()}
