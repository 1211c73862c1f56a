"""Find lost rollups, and mark them so that they are built again.

An object is lost if it is missing, if the store returns other objects but not this one, or if it is not a
valid Parquet file. If the store returns no object at all, it is unreachable, and nothing is marked.
"""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

import duckdb

from analytics.models import DayRollup, Kind, MergedRollup, SummaryDocument
from analytics.summaries.files import scratch_directory
from analytics.summaries.rollup_schema import NO_VERSION
from logs.compaction.writer import connect
from logs.layout import logs_prefix
from logs.partitions import partitions_with_file
from logs.quoting import quote_text
from tenantadmin.lib.objectstore import ObjectNotFound, StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path
    from uuid import UUID

    from tenantadmin.lib.objectstore import ObjectStore

_log = logging.getLogger(__name__)

#: If the store cannot return this many objects and has returned none, it is unreachable.
_MAX_FAILURES: Final = 3
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PublishedBuild:
    """A published build of a day (a date), a month, a year or the history, and the keys of its objects."""

    period: date | str
    build: str
    keys: Collection[str]


class LostRollups(StoreError):
    """A period cannot be built because rollups are lost. ``days`` and ``periods`` are now marked as stale."""

    def __init__(self, *, tenant: UUID, days: Sequence[date], periods: Sequence[str]) -> None:
        names = ", ".join([*map(str, days), *periods])
        super().__init__(f"rollups of tenant {tenant} were lost and must be built again: {names}")
        self.days = days
        self.periods = periods


def mark_lost_rollups(store: ObjectStore, *, tenant: UUID, builds: Iterable[PublishedBuild]) -> None:
    """Read all objects of ``builds``, and mark lost builds as stale.

    Raises:
        LostRollups: at least one build is lost.
        StoreError: the store is unreachable.
    """
    lost = _find_lost(store, builds=builds)
    if lost and _has_logs(store, tenant):
        days, periods = _mark_as_stale(lost, tenant=tenant)
        raise LostRollups(tenant=tenant, days=days, periods=periods)


def mark_missing_objects(store: ObjectStore, *, tenant: UUID) -> None:
    """Mark days, months and years as stale whose objects are missing or have another size.

    Objects are listed but not read.

    Raises:
        StoreError: the object store failed.
    """
    # Read the builds before listing objects. Replaced objects stay for a while, so none seems missing.
    published = _published_builds(tenant)
    sizes = {
        entry.key: entry.size
        for folder in ("compacted", "rollups")
        for entry in store.list(f"{tenant}/{folder}/")
    }
    lost = [
        build
        for build, size in published
        if not sizes.keys() >= set(build.keys) or sum(sizes[key] for key in build.keys) != size
    ]
    if lost and _has_logs(store, tenant):
        _mark_as_stale(lost, tenant=tenant)
        _log.warning("Objects of %d builds of tenant %s are lost; building them again", len(lost), tenant)


def _published_builds(tenant: UUID) -> list[tuple[PublishedBuild, int]]:
    """Return the published builds, each with the total size of its objects."""
    days = DayRollup.objects.filter(tenant_id=tenant).values_list("day", "build", "files", "bytes")
    merged = MergedRollup.objects.filter(tenant_id=tenant).values_list("period", "build", "files", "bytes")
    logs = partitions_with_file(tenant=tenant)
    documents = SummaryDocument.objects.filter(tenant_id=tenant).exclude(file="")
    return [
        *((PublishedBuild(day, build, files.values()), size) for day, build, files, size in days),
        *((PublishedBuild(period, build, files.values()), size) for period, build, files, size in merged),
        *((PublishedBuild(log.day, log.build, log.files), log.bytes) for log in logs.defer("hours")),
        *(
            (PublishedBuild(date.fromisoformat(period) if kind == Kind.DAY else period, source, [file]), size)
            for kind, period, source, file, size in documents.values_list(
                "kind", "period", "source", "file", "bytes"
            )
        ),
    ]


def _mark_as_stale(lost: Sequence[PublishedBuild], *, tenant: UUID) -> tuple[list[date], list[str]]:
    """Mark the days, and the months, years and history, of ``lost`` builds as stale. Return both."""
    days = sorted({build.period for build in lost if not isinstance(build.period, str)})
    periods = sorted({build.period for build in lost if isinstance(build.period, str)})
    # Do not mark a period that has been built again in the meantime.
    is_lost = {"tenant_id": tenant, "build__in": [build.build for build in lost]}
    DayRollup.objects.filter(**is_lost, day__in=days).update(version=NO_VERSION)
    MergedRollup.objects.filter(**is_lost, period__in=periods).update(source="")
    SummaryDocument.objects.filter(tenant_id=tenant, period__in=periods).update(source="")
    return days, periods


def _has_logs(store: ObjectStore, tenant: UUID) -> bool:
    """Return False if no raw log is left: the store is empty, or the tenant is being deleted."""
    return store.listdir(logs_prefix(tenant)) != ([], [])


def _find_lost(store: ObjectStore, *, builds: Iterable[PublishedBuild]) -> list[PublishedBuild]:
    lost: list[PublishedBuild] = []
    failures: list[StoreError] = []
    readable_key = ""
    with scratch_directory() as directory:
        for build in builds:
            for key in build.keys:
                try:
                    _check_readable(store, key, directory=directory)
                except (ObjectNotFound, duckdb.Error) as error:
                    _log.warning("Lost %s: %s", key, error)
                except StoreError as error:
                    failures.append(error)
                    if readable_key:
                        # If this fails too, the store has become unreachable.
                        _copy(store, readable_key, directory / "copy.parquet")
                    elif len(failures) == _MAX_FAILURES:
                        raise
                    _log.warning("Cannot read %s: %s", key, error)
                else:
                    readable_key = key
                    continue
                lost.append(build)
                break
    if failures and not readable_key:
        raise failures[0]
    return lost


def _check_readable(store: ObjectStore, key: str, *, directory: Path) -> None:
    """Read a Parquet file with a separate DuckDB, because a damaged file can make a DuckDB unusable."""
    copy = directory / "copy.parquet"
    _copy(store, key, copy)
    with connect(spill=directory / "spill") as engine:
        engine.execute(f"SELECT max(hash(t)) FROM read_parquet({quote_text(copy)}) t").fetchall()  # noqa: S608


def _copy(store: ObjectStore, key: str, target: Path) -> None:
    with store.open(key) as file, target.open("wb") as out:
        shutil.copyfileobj(file, out, _CHUNK_BYTES)
