"""Raw files through the service's own compaction and rollups, without a database."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import UUID

import duckdb

from analytics.rollup import write_rollups
from analytics.source import RolledDay, Rollups
from logs.compaction.build import CompactedDay, compact_day
from logs.listing import list_day
from tenantadmin.objectstore import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date
    from pathlib import Path

TENANT = UUID("11111111-2222-4333-8444-555555555555")


def store_files(root: Path, days: Mapping[date, Mapping[str, bytes]]) -> LocalStore:
    """A store that holds ``HH/<name>.json`` of each day."""
    store = LocalStore(root)
    for day, files in days.items():
        for name, body in files.items():
            store.write(f"{TENANT}/logs/{day:%Y/%m/%d}/{name}", body)
    return store


def roll_day(store: LocalStore, day: date, *, directory: Path) -> tuple[CompactedDay, RolledDay | None]:
    """Compact and roll up one day under ``directory``."""
    place = directory / f"day={day.isoformat()}"
    place.mkdir(parents=True)
    compacted = compact_day(store, list_day(store, tenant=TENANT, day=day), directory=place)
    if compacted.file is None:
        return compacted, None
    with duckdb.connect(config={"threads": 1}) as connection:
        files = write_rollups(connection, log=compacted.file, directory=place)
    return compacted, RolledDay(day, {table: str(path) for table, path in files.items()})


@contextmanager
def opened(days: list[RolledDay], *, user: str | None = None) -> Iterator[Rollups]:
    """The rollups of ``days`` on a connection of their own."""
    with duckdb.connect(config={"threads": 1}) as connection:
        yield Rollups(connection, days, user=user)
