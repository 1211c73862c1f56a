"""Compact a day's raw objects into its Parquet file.

If only some hours changed since the previous build, the rows of the other hours come from its file.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from logs.compaction.convert import SCHEMA
from logs.compaction.previous import HourState, PreviousBuild, hours_to_read, write_reused_rows
from logs.compaction.rows import InvalidEntry, read_rows
from logs.compaction.table_names import TableNames, count_table_names
from logs.compaction.writer import WrittenFile, write_day
from logs.layout import hour_of, hour_of_any
from logs.listing import mark_as_changed
from tenantadmin.lib.objectstore.keys import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from logs.listing import DayListing
    from tenantadmin.lib.objectstore import ObjectStore
    from tenantadmin.lib.objectstore.batch import Batch, Entry

#: If the new rows take more bytes, they go into an Arrow file.
_MAX_BYTES_IN_MEMORY: Final = 256 << 20
_NOT_READ: Final = "not read: the name does not end in .json, or the object lies in another folder"


@dataclass(frozen=True, slots=True)
class CompactedDay:
    """A compacted day.

    Attributes:
        file: its Parquet file; None if it has no rows.
        listing: its objects.
        hours: the state of each hour, for the next build.
        read_count: how many of the objects were read.
        table_names: how its rows spell the names of tables.
    """

    file: Path | None
    rows: int
    quarantined: tuple[InvalidEntry, ...]
    listing: DayListing
    hours: Mapping[int, HourState]
    read_count: int
    table_names: TableNames

    @property
    def duplicates(self) -> int:
        """The number of entries that were dropped because an earlier entry has the same ``logId``."""
        return sum(hour.duplicates for hour in self.hours.values())


def compact_day(
    store: ObjectStore,
    listing: DayListing,
    *,
    directory: Path,
    previous: PreviousBuild | None = None,
    bounds: Sequence[int] = (),
) -> CompactedDay:
    """Compact a day's objects into ``directory``, which the caller makes and removes.

    The rows depend only on the objects' names and bytes: ``previous`` saves reading unchanged hours. If an
    object is gone or changed since the listing, its hour counts as changed in the next comparison.

    Args:
        bounds: see `write_day`.

    Raises:
        StoreError: an object could not be read, or the directory could not be written.
    """
    try:
        read_hours: AbstractSet[int]
        reused = None
        if previous is not None:
            read_hours = hours_to_read(listing, previous)
            if not read_hours >= listing.hours.keys():
                reused = write_reused_rows(store, previous, except_hours=read_hours, directory=directory)
        if reused is None:
            previous, read_hours = None, listing.hours.keys()
        entries = [item for hour, own in listing.hours.items() if hour in read_hours for item in own.entries]
        differing_hours: set[int] = set()
        batches = _find_differences(entries, store.read_many(entries), hours=differing_hours)
        quarantined = [
            InvalidEntry(key, None, _NOT_READ)
            for hour, own in listing.hours.items()
            if hour in read_hours
            for key in own.others
        ]
        rows = collect_rows(read_rows(batches, day=listing.day, quarantined=quarantined), directory)
        written = _write(rows, reused=reused, directory=directory, bounds=bounds)
        listing = mark_as_changed(listing, differing_hours)
        return _compacted_day(listing, written, quarantined, previous=previous, read_hours=read_hours)
    except OSError as error:
        raise StoreError(f"cannot build {listing.day} in {directory}: {error}") from error


def _find_differences(
    entries: Iterable[Entry], batches: Iterable[Batch], *, hours: set[int]
) -> Iterator[Batch]:
    """Yield the batches. At the end, add the hours of objects that were not read as listed to ``hours``.

    Such an object may later become what was listed. The digest of the listing would then hide that this build
    did not read it.
    """
    missing = {item.key: item.size for item in entries}
    for batch in batches:
        for item, (start, following) in zip(batch.entries, pairwise(batch.starts), strict=True):
            if missing.get(item.key) == following - start - 1:
                del missing[item.key]
        yield batch
    hours.update(map(hour_of, missing))


def _write(
    rows: list[pa.RecordBatch] | Path, *, reused: Path | None, directory: Path, bounds: Sequence[int] = ()
) -> WrittenFile | None:
    written = write_day(rows, reused=reused, target=directory / "day.parquet", bounds=bounds)
    for source in (reused, rows):
        if isinstance(source, Path):
            source.unlink()
    return written


def collect_rows(batches: Iterator[pa.RecordBatch], directory: Path) -> list[pa.RecordBatch] | Path:
    """Return all batches, in memory if they fit, else as an Arrow file in ``directory``."""
    in_memory: deque[pa.RecordBatch] = deque()
    size = 0
    for batch in batches:
        in_memory.append(batch)
        size += batch.nbytes
        if size > _MAX_BYTES_IN_MEMORY:
            break
    else:
        return list(in_memory)
    target = directory / "rows.arrow"
    with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        while in_memory:
            writer.write_batch(in_memory.popleft())
        for batch in batches:
            writer.write_batch(batch)
    return target


def _compacted_day(
    listing: DayListing,
    written: WrittenFile | None,
    quarantined: list[InvalidEntry],
    *,
    previous: PreviousBuild | None,
    read_hours: AbstractSet[int],
) -> CompactedDay:
    if previous is not None:
        quarantined += [item for item in previous.quarantined if hour_of_any(item.key) not in read_hours]
    # Entries of one object are in the order of their positions.
    quarantined.sort(key=attrgetter("key"))
    return CompactedDay(
        None if written is None else written.path,
        0 if written is None else written.rows,
        tuple(quarantined),
        listing,
        _hour_states(listing, written, previous=previous, read_hours=read_hours),
        sum(len(objects.entries) for hour, objects in listing.hours.items() if hour in read_hours),
        TableNames() if written is None else count_table_names(written.path),
    )


def _hour_states(
    listing: DayListing,
    written: WrittenFile | None,
    *,
    previous: PreviousBuild | None,
    read_hours: AbstractSet[int],
) -> dict[int, HourState]:
    """Return the state of each hour. For reused hours, add to the state of the previous build."""
    duplicates = {} if written is None else written.duplicates
    states = {}
    for hour, objects in listing.hours.items():
        before = previous.hours[hour] if previous is not None and hour not in read_hours else HourState("")
        dropped = {kept_hour: count for (own, kept_hour), count in duplicates.items() if own == hour}
        superseded_by = {*before.superseded_by, *dropped} - {hour}
        states[hour] = HourState(
            objects.digest, before.duplicates + sum(dropped.values()), tuple(sorted(superseded_by))
        )
    return states
