"""Documents of one user: derived from rollups when asked for, and remembered until the rollups change.

Contract: "Summary records": the same shapes as the tenant's, scoped to one user. A day is read from its own
rollups, a month and a year from their merged ones, which hold the users too.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, BinaryIO, Final

from analytics.encoding import encode_document
from analytics.summaries.daytables import DayTables
from analytics.summaries.documents.day import day_document
from analytics.summaries.documents.month import month_document
from analytics.summaries.documents.year import daily_activity, year_document
from analytics.summaries.engine import lent_engine
from analytics.summaries.files import scratch_directory
from analytics.summaries.memory import recall, remember
from analytics.summaries.periods import is_year, period_bounds, year_before
from analytics.summaries.rollup import write_rollups
from analytics.summaries.source import Rollups
from analytics.summaries.store import (
    day_builds,
    has_outdated_days,
    locate,
    merged_rollups,
    outdated_day_log,
    write_document,
)
from logs.sources import local_copies
from tenantadmin.core.errors import ApiError
from tenantadmin.core.rendering import strong_etag

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from uuid import UUID

    from duckdb import DuckDBPyConnection

    from tenantadmin.objectstore import ObjectStore

_BEING_MADE_ANEW: Final = (
    "The service was upgraded and is rolling up this period anew. Try again in a minute."
)


@dataclass(frozen=True, slots=True)
class UserSource:
    """What a user's document of a period is computed from."""

    tenant: UUID
    user: str
    period: str
    #: Rollups of the period, table name to object key; for a year of the year before too, where it has any.
    files: Mapping[str, Mapping[str, str]]
    #: Changes with the builds.
    etag: str
    #: The key of a day's file, where its rollups are of another version of this service and cannot be read.
    log: str = ""


def find_user_source(*, tenant: UUID, user: str, period: str) -> UserSource | None:
    """The rollups behind a user's document, or None where the tenant has no entry in ``period``.

    Since an upgrade that changed the days' rollups, and until they are made anew, months and years are still
    those of before, as the tenant's documents are; a day is rolled up when asked for.

    Raises:
        ApiError: what there is is too old for that, and not made anew yet.
    """
    first, last = period_bounds(period)
    log = ""
    if first == last:
        builds = day_builds(tenant=tenant, period=period)
        parts = {item.day.isoformat(): (item.build, item.files) for item in builds}
        if any(item.is_outdated for item in builds):
            log = outdated_day_log(tenant=tenant, day=first)
            if not log:
                raise ApiError(_BEING_MADE_ANEW, headers={"Retry-After": "60"})
    else:
        wanted = {period, year_before(period)} if is_year(period) else {period}
        merged = merged_rollups(tenant=tenant, periods=wanted)
        parts = {name: (item.build, item.files) for name, item in merged.items()}
    if period not in parts:
        if has_outdated_days(tenant=tenant, period=period):
            raise ApiError(_BEING_MADE_ANEW, headers={"Retry-After": "60"})
        return None
    etag = strong_etag(tenant, user, period, *(parts[name][0] for name in sorted(parts)))
    return UserSource(tenant, user, period, {name: files for name, (_, files) in parts.items()}, etag, log)


def user_document(store: ObjectStore, source: UserSource) -> bytes | BinaryIO | None:
    """A user's document as it goes out, or None where the user has no entry in the period.

    A large one is an open file, which the caller closes; it is not remembered.
    """
    key = f"user-document:{source.etag}"
    remembered = recall(key)
    if remembered is not None:
        return remembered
    with _pieces(store, source) as (pieces, directory):
        document = write_document(pieces, spill=directory / "document.json")
        if document.path is not None:
            # The directory goes, the open file stays until it is closed.
            return document.path.open("rb")
    if not document.body:
        return None
    remember(key, document.body)
    return document.body


@contextmanager
def _pieces(store: ObjectStore, source: UserSource) -> Iterator[tuple[Iterable[bytes], Path]]:
    """The document in pieces, none where the user has no entry, and a directory for what they come to."""
    first, last = period_bounds(source.period)
    if first == last:
        with scratch_directory() as directory:
            yield day_document(_day_tables(store, source, directory=directory)), directory
        return
    with lent_engine(store) as engine:
        yield _merged_pieces(store, engine.connection, source), engine.directory


def _day_tables(store: ObjectStore, source: UserSource, *, directory: Path) -> DayTables:
    if source.log:
        (log,) = local_copies().paths(store, [source.log])
        files = write_rollups(log, day=date.fromisoformat(source.period), directory=directory)
        return DayTables(files, user=source.user)
    keys = [source.files[source.period][table] for table in DayTables.NAMES]
    paths = local_copies().paths(store, keys)
    return DayTables(dict(zip(DayTables.NAMES, paths, strict=True)), user=source.user)


def _merged_pieces(store: ObjectStore, connection: DuckDBPyConnection, source: UserSource) -> Iterable[bytes]:
    """A month's or a year's."""

    def opened(period: str) -> Rollups:
        return Rollups(connection, [locate(store, source.files[period])], user=source.user)

    own = opened(source.period)
    first, _ = period_bounds(source.period)
    if not is_year(source.period):
        month = month_document(own, month=first.month)
        return [] if month is None else [encode_document(month)]
    activity = daily_activity(own)
    if not activity:
        return []
    before = year_before(source.period)
    if before != source.period and before in source.files:
        activity = daily_activity(opened(before)) + activity
    return [encode_document(year_document(own, tenant=source.tenant, year=first.year, activity=activity))]
