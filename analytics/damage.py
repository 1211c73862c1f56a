"""Finds lost rollups, by what fails for want of them, and has them made again.

Lost is an object that is gone, that the store cannot give while it gives others, or that holds no table any
more. A store that gives nothing at all has lost nothing: then nothing is marked.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import duckdb

from analytics.files import scratch_directory
from analytics.models import DayRollup, MergedRollup, SummaryDocument
from analytics.rollup_tables import NO_VERSION
from logs.compaction.engine import connect, text
from logs.layout import logs_prefix
from tenantadmin.objectstore import ObjectNotFound, StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import date
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
    lost = _find_lost(store, tenant=tenant, sources=sources)
    days = [source.period for source in lost if not isinstance(source.period, str)]
    periods = [source.period for source in lost if isinstance(source.period, str)]
    # One that was built again meanwhile is another build.
    builds = [source.build for source in lost]
    own = {"tenant_id": tenant, "build__in": builds}
    DayRollup.objects.filter(**own, day__in=days).update(version=NO_VERSION)
    MergedRollup.objects.filter(**own, period__in=periods).update(source="")
    SummaryDocument.objects.filter(tenant_id=tenant, period__in=periods).update(source="")
    if lost:
        raise LostRollups(tenant=tenant, days=days, periods=periods)


def _find_lost(store: ObjectStore, *, tenant: UUID, sources: Iterable[Source]) -> list[Source]:
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
    # No raw logs either: the store is not there, or the tenant is leaving it.
    return lost if next(iter(store.children(logs_prefix(tenant))), None) is not None else []


def _read(store: ObjectStore, key: str, *, directory: Path) -> None:
    """Read an object as the engine would, in one of its own: damage can end an engine."""
    copy = directory / "copy.parquet"
    _copy(store, key, copy)
    with connect(spill=directory / "spill") as engine:
        engine.execute(f"SELECT max(hash(t)) FROM read_parquet({text(copy)}) t").fetchall()  # noqa: S608


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
