"""A day's raw objects to its Parquet file: listing, reading side by side, conversion."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from logs.compaction.batches import BatchObject, Quarantined, log_ids_path
from logs.compaction.engine import ParquetFile, UnreadableBatch, connect, write_parquet
from logs.compaction.worker import write_batches

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from logs.listing import DayListing
    from tenantadmin.objectstore import ObjectStore

#: Below this many objects, or bytes, a second process costs more than it saves.
_OBJECTS_PER_PROCESS: Final = 4_000
_BYTES_PER_PROCESS: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class CompactedDay:
    """A compacted day: its Parquet file (None where no entry was good) and what was set aside."""

    file: ParquetFile | None
    quarantined: tuple[Quarantined, ...]

    @property
    def rows(self) -> int:
        """Rows of the day."""
        return self.file.rows if self.file else 0


def compact_day(
    store: ObjectStore, listing: DayListing, *, directory: Path, processes: int | None = None
) -> CompactedDay:
    """Compact the listed objects into ``directory``, which the caller makes and removes.

    The rows are a pure function of the listed objects' names and bytes.

    Raises:
        StoreError: an object could not be read.
    """
    shares = _shares(listing, processes=processes or os.cpu_count() or 1)
    try:
        return _compact(store, listing, shares, directory=directory, is_canonical=False)
    except UnreadableBatch:
        return _compact(store, listing, shares, directory=directory, is_canonical=True)


def _compact(
    store: ObjectStore,
    listing: DayListing,
    shares: Sequence[Sequence[BatchObject]],
    *,
    directory: Path,
    is_canonical: bool,
) -> CompactedDay:
    written = write_batches(store, shares, directory=directory, is_canonical=is_canonical)
    quarantined = tuple(item for _, result in written for item in result.quarantined)
    paths = [path for path, result in written if result.entries]
    try:
        if not paths:
            return CompactedDay(None, quarantined)
        with connect(spill=directory / "spill") as connection:
            file = write_parquet(
                connection,
                paths,
                log_ids=[log_ids_path(path) for path in paths],
                day=listing.day,
                target=directory / "day.parquet",
            )
        return CompactedDay(file, quarantined)
    finally:
        for path, _ in written:
            path.unlink()
            log_ids_path(path).unlink()


def _shares(listing: DayListing, *, processes: int) -> list[list[BatchObject]]:
    """The objects in runs of about equal bytes, one for each process that is worth its start."""
    objects = [BatchObject(number, item.key, item.hour) for number, item in enumerate(listing.objects)]
    worth = max(len(objects) // _OBJECTS_PER_PROCESS, listing.size // _BYTES_PER_PROCESS)
    count = max(1, min(processes, worth, len(objects)))
    shares: list[list[BatchObject]] = [[] for _ in range(count)]
    total, before = max(1, listing.size), 0
    for item, listed in zip(objects, listing.objects, strict=True):
        shares[min(count - 1, before * count // total)].append(item)
        before += listed.size
    return [share for share in shares if share] or [[]]
