"""Compute the documents of one user from rollups, on request, and cache them until the rollups change.

Contract: "Summary records". The documents have the same fields as for a tenant. The document of a day uses
the day's rollups. Documents of months and years use merged rollups, which include users.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID

import duckdb
import msgspec

from analytics.numbers.documents import day_document, month_document
from analytics.numbers.merged import Rollups, is_year, period_bounds, year_before
from analytics.numbers.rollup import write_rollups
from analytics.numbers.store import (
    cache_document,
    day_builds,
    get_cached,
    has_outdated_days,
    local_tables,
    outdated_day_log,
    read_merged_rollups,
    scratch_directory,
    shared_engine,
    write_document,
)
from analytics.numbers.tables import DayTables
from analytics.numbers.yearly import daily_activity, year_document
from logs.sources import local_path
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.rendering import strong_etag

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from tenantadmin.lib.objectstore import ObjectStore


def _in_upgrade() -> ApiError:
    message = "The service was upgraded and is rolling up this period again. Try again in a minute."
    return ApiError(message, headers={"Retry-After": "60"})


@dataclass(frozen=True, slots=True)
class UserSource:
    """The rollups from which a user's document is computed.

    Attributes:
        files: by period, table names to object keys. For a year, this includes the year before, if it has
            rollups.
        etag: it changes when the builds change.
        log: the key of a day's Parquet file, if another version of the service made the day's rollups.
    """

    tenant: UUID
    user: str
    period: str
    files: Mapping[str, Mapping[str, str]]
    etag: str
    log: str = ""


def find_user_source(*, tenant: UUID, user: str, period: str) -> UserSource | None:
    """Find the rollups for a user's document. Return None if the tenant has no log entry in ``period``.

    An upgrade may change the rollups. Until they are built again, months and years use the rollups from
    before the upgrade, and a day is rolled up on request.

    Raises:
        ApiError: the rollups from before the upgrade cannot be used, and the new ones are not built yet.
    """
    first, last = period_bounds(period)
    log = ""
    if first == last:
        builds = day_builds(tenant=tenant, period=period)
        parts = {item.day.isoformat(): (item.build, item.files) for item in builds}
        if any(item.is_outdated for item in builds):
            log = outdated_day_log(tenant=tenant, day=first)
            if not log:
                raise _in_upgrade()
    else:
        periods = {period, year_before(period)} if is_year(period) else {period}
        merged = read_merged_rollups(tenant=tenant, periods=periods)
        parts = {name: (item.build, item.files) for name, item in merged.items()}
    if period not in parts:
        if has_outdated_days(tenant=tenant, period=period):
            raise _in_upgrade()
        return None
    etag = strong_etag(tenant, user, period, *(parts[name][0] for name in sorted(parts)))
    return UserSource(tenant, user, period, {name: files for name, (_, files) in parts.items()}, etag, log)


def user_document(store: ObjectStore, source: UserSource) -> bytes | BinaryIO | None:
    """Return a user's document as JSON, or None if the user has no log entry in the period.

    A large document is returned as an open file, which the caller closes. It is not cached.

    Raises:
        ApiError: the rollups are from before an upgrade and lack a column.
    """
    key = f"user-document:{source.etag}"
    cached = get_cached(key)
    if cached is not None:
        return cached
    with _compute(store, source) as (pieces, directory):
        document = write_document(pieces, spill=directory / "document.json")
        if document.path is not None:
            # The open file can be read after its directory is removed.
            return document.path.open("rb")
    if not document.body:
        return None
    cache_document(key, document.body)
    return document.body


@contextmanager
def _compute(store: ObjectStore, source: UserSource) -> Iterator[tuple[Iterable[bytes], Path]]:
    """Yield the pieces of the document (none without log entries) and a working directory."""
    first, last = period_bounds(source.period)
    if first == last:
        with scratch_directory() as directory:
            yield day_document(_day_tables(store, source, directory=directory)), directory
        return
    with shared_engine() as engine:
        try:
            document = _merged_document(store, engine.connection, source)
        except duckdb.BinderException as error:
            raise _in_upgrade() from error
        yield document, engine.directory


def _day_tables(store: ObjectStore, source: UserSource, *, directory: Path) -> DayTables:
    if source.log:
        log = Path(local_path(store, source.log))
        files = write_rollups(log, day=date.fromisoformat(source.period), directory=directory)
        return DayTables(files, user=source.user)
    tables = local_tables(store, source.files[source.period])
    return DayTables({name: Path(tables[name]) for name in DayTables.NAMES}, user=source.user)


def _merged_document(
    store: ObjectStore, connection: DuckDBPyConnection, source: UserSource
) -> Iterable[bytes]:
    """Return the document of a month or a year; nothing if the user has no log entry."""

    def rollups_of(period: str) -> Rollups:
        return Rollups(connection, [local_tables(store, source.files[period])], user=source.user)

    own = rollups_of(source.period)
    first, _ = period_bounds(source.period)
    if not is_year(source.period):
        month = month_document(own, month=first.month)
        return [] if month is None else [msgspec.json.encode(month)]
    activity = daily_activity(own)
    if not activity:
        return []
    before = year_before(source.period)
    if before != source.period and before in source.files:
        activity = daily_activity(rollups_of(before)) + activity
    return [msgspec.json.encode(year_document(own, tenant=source.tenant, year=first.year, activity=activity))]
