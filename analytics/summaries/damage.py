"""Finds lost rollups, by what fails for want of them, and has them made again.

Lost is an object that is gone, that the store cannot give while it gives others, or that holds no table any
more. A store that gives nothing at all has lost nothing: then nothing is marked.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

import duckdb

from analytics.models import DayRollup, Kind, MergedRollup, SummaryDocument
from analytics.summaries.files import scratch_directory
from analytics.summaries.rollup_tables import NO_VERSION
from logs.compaction.engine import connect, sql_text
from logs.layout import logs_prefix
from logs.models import Partition
from tenantadmin.objectstore import ObjectNotFound, StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path
    from uuid import UUID

    from tenantadmin.objectstore import ObjectStore

_log = logging.getLogger(__name__)

#: After so many objects that the store cannot give, and none that it can, the store is taken to be away.
_FAILURES: Final = 3
_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """Rollups that a build reads: of a day, or merged ones of a month or a year; their build and objects."""

    period: date | str
    build: str
    keys: Collection[str]


class LostRollups(StoreError):
    """Rollups that a period is made of were lost. They are marked: ``days`` and ``periods`` are stale now."""

    def __init__(self, *, tenant: UUID, days: Sequence[date], periods: Sequence[str]) -> None:
        names = ", ".join([*map(str, days), *periods])
        super().__init__(f"rollups of tenant {tenant} were lost and have to be made again: {names}")
        self.days = days
        self.periods = periods


def mark_lost_rollups(store: ObjectStore, *, tenant: UUID, sources: Iterable[Source]) -> None:
    """Read ``sources`` whole, and mark those that are lost as stale.

    Raises:
        LostRollups: there were some.
        StoreError: the store fails altogether.
    """
    lost = _find_lost(store, sources=sources)
    if lost and _has_logs(store, tenant):
        days, periods = _mark(lost, tenant=tenant)
        raise LostRollups(tenant=tenant, days=days, periods=periods)


def mark_what_is_gone(store: ObjectStore, *, tenant: UUID) -> None:
    """Mark as stale the days, months and years that name an object which is gone, or not as long as it was.

    Lists objects, reads none.

    Raises:
        StoreError: the object store failed.
    """
    # What is published from here on is not missed; what is replaced stays for a while.
    named = _named_objects(tenant)
    sizes = {
        entry.key: entry.size
        for folder in ("compacted", "rollups")
        for entry in store.list(f"{tenant}/{folder}/")
    }
    lost = [
        source
        for source, size in named
        if not sizes.keys() >= set(source.keys) or sum(sizes[key] for key in source.keys) != size
    ]
    if lost and _has_logs(store, tenant):
        _mark(lost, tenant=tenant)
        _log.warning("Objects of %d builds of tenant %s are lost and are made again", len(lost), tenant)


def _named_objects(tenant: UUID) -> list[tuple[Source, int]]:
    """What is published, and the bytes of its objects in all."""
    days = DayRollup.objects.filter(tenant_id=tenant).values_list("day", "build", "files", "bytes")
    merged = MergedRollup.objects.filter(tenant_id=tenant).values_list("period", "build", "files", "bytes")
    logs = Partition.objects.filter(tenant_id=tenant).exclude(file="")
    documents = SummaryDocument.objects.filter(tenant_id=tenant).exclude(file="")
    return [
        *((Source(day, build, files.values()), size) for day, build, files, size in days),
        *((Source(period, build, files.values()), size) for period, build, files, size in merged),
        *(
            (Source(day, build, [file]), size)
            for day, build, file, size in logs.values_list("day", "build", "file", "bytes")
        ),
        *(
            (Source(date.fromisoformat(period) if kind == Kind.DAY else period, source, [file]), size)
            for kind, period, source, file, size in documents.values_list(
                "kind", "period", "source", "file", "bytes"
            )
        ),
    ]


def _mark(lost: Sequence[Source], *, tenant: UUID) -> tuple[list[date], list[str]]:
    """Make the days, and the months, years and history, of ``lost`` stale; returns which."""
    days = sorted({source.period for source in lost if not isinstance(source.period, str)})
    periods = sorted({source.period for source in lost if isinstance(source.period, str)})
    # One that was built again meanwhile is another build.
    own = {"tenant_id": tenant, "build__in": [source.build for source in lost]}
    DayRollup.objects.filter(**own, day__in=days).update(version=NO_VERSION)
    MergedRollup.objects.filter(**own, period__in=periods).update(source="")
    SummaryDocument.objects.filter(tenant_id=tenant, period__in=periods).update(source="")
    return days, periods


def _has_logs(store: ObjectStore, tenant: UUID) -> bool:
    """Whether any raw log is there; if not, the store is not, or the tenant is leaving it."""
    return next(iter(store.children(logs_prefix(tenant))), None) is not None


def _find_lost(store: ObjectStore, *, sources: Iterable[Source]) -> list[Source]:
    lost: list[Source] = []
    failures: list[StoreError] = []
    good = ""
    with scratch_directory() as directory:
        for source in sources:
            for key in source.keys:
                try:
                    _read(store, key, directory=directory)
                except (ObjectNotFound, duckdb.Error) as error:
                    _log.warning("Lost %s: %s", key, error)
                except StoreError as error:
                    failures.append(error)
                    if good:
                        # Fails as well where the store is away.
                        _copy(store, good, directory / "copy.parquet")
                    elif len(failures) == _FAILURES:
                        raise
                    _log.warning("Cannot read %s: %s", key, error)
                else:
                    good = key
                    continue
                lost.append(source)
                break
    if failures and not good:
        raise failures[0]
    return lost


def _read(store: ObjectStore, key: str, *, directory: Path) -> None:
    """Read an object as the engine would, in one of its own: damage can end an engine."""
    copy = directory / "copy.parquet"
    _copy(store, key, copy)
    with connect(spill=directory / "spill") as engine:
        engine.execute(f"SELECT max(hash(t)) FROM read_parquet({sql_text(copy)}) t").fetchall()  # noqa: S608


def _copy(store: ObjectStore, key: str, target: Path) -> None:
    with store.open(key) as stream, target.open("wb") as out:
        while True:
            try:
                piece = stream.read(_PIECE)
            except OSError as error:
                raise StoreError(f"cannot read {key!r}: {error.strerror}") from error
            if not piece:
                return
            out.write(piece)
