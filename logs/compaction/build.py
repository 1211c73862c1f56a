"""A day's raw objects to its Parquet file: rows of all that is read, then one sorted file.

Where only some hours changed since the last build, the rows of the others are taken from its file.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from logs.compaction.base import Base, HourState, hours_to_read, write_kept_rows
from logs.compaction.batches import read_rows
from logs.compaction.convert import SCHEMA
from logs.compaction.merge import Merged, write_day
from logs.layout import hour_of
from logs.listing import UnlistedDay, describe_day, read_day, with_unsettled
from tenantadmin.objectstore import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from logs.compaction.batches import Quarantined
    from logs.listing import DayListing
    from tenantadmin.objectstore import Batch, Entry, ObjectStore

#: Bytes of rows that are held in memory until they are written.
_BYTES_IN_MEMORY: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class CompactedDay:
    """A compacted day: its Parquet file (None where no entry was good), what was set aside, its hours.

    ``listing`` is what it was made of, and ``read`` how many objects of that were read.
    """

    file: Path | None
    rows: int
    quarantined: tuple[Quarantined, ...]
    listing: DayListing
    hours: Mapping[int, HourState] = field(default_factory=dict)
    read: int = 0

    @property
    def duplicates(self) -> int:
        """Entries that a logId that came before had made superfluous."""
        return sum(hour.duplicates for hour in self.hours.values())


def compact_day(
    store: ObjectStore,
    day: DayListing | UnlistedDay,
    *,
    directory: Path,
    base: Base | None = None,
) -> CompactedDay:
    """Compact a day's objects into ``directory``, which the caller makes and removes.

    The rows are a pure function of the objects' names and bytes; ``base``, the build before, only spares
    reading what was listed and has not changed. An object that is gone since the listing counts as absent,
    and its hour as changed when the day is looked at again.

    Raises:
        StoreError: an object could not be read, or the directory not be written.
    """
    try:
        if isinstance(day, UnlistedDay):
            return _compact_unlisted(store, day, directory=directory)
        return _compact_listed(store, day, directory=directory, base=base)
    except OSError as error:
        raise StoreError(f"cannot build {day.day} in {directory}: {error}") from error


def _compact_unlisted(store: ObjectStore, day: UnlistedDay, *, directory: Path) -> CompactedDay:
    found: list[Entry] = []
    quarantined: list[Quarantined] = []
    batches = read_day(store, tenant=day.tenant, day=day.day, found=found)
    rows = _hold(read_rows(batches, day=day.day, quarantined=quarantined), directory)
    with ThreadPoolExecutor(1) as pool:
        # It holds the interpreter, of which writing needs little.
        describing = pool.submit(describe_day, found, tenant=day.tenant, day=day.day)
        merged = _write(rows, kept=None, directory=directory)
    listing = describing.result()
    return _compacted(listing, merged, quarantined, base=None, changed=listing.hours.keys())


def _compact_listed(
    store: ObjectStore, listing: DayListing, *, directory: Path, base: Base | None
) -> CompactedDay:
    changed: AbstractSet[int] = listing.hours.keys()
    kept = None
    if base is not None:
        changed = hours_to_read(listing, base)
        if not changed >= listing.hours.keys():
            kept = write_kept_rows(store, base, without=changed, directory=directory)
    if kept is None:
        base, changed = None, listing.hours.keys()
    wanted = [entry for hour, own in listing.hours.items() if hour in changed for entry in own.entries]
    unsettled: set[int] = set()
    batches = _those_there(wanted, store.read_many(wanted), unsettled=unsettled)
    quarantined: list[Quarantined] = []
    rows = _hold(read_rows(batches, day=listing.day, quarantined=quarantined), directory)
    merged = _write(rows, kept=kept, directory=directory)
    listing = with_unsettled(listing, unsettled)
    return _compacted(listing, merged, quarantined, base=base, changed=changed)


def _those_there(
    wanted: Iterable[Entry], batches: Iterable[Batch], *, unsettled: set[int]
) -> Iterator[Batch]:
    """The batches; to ``unsettled`` the hours of what was wanted and is not there as it was listed.

    One that is gone may come back as it was. A listing that knew of it would hide that it was not read.
    """
    others = {entry.key: entry.size for entry in wanted}
    for batch in batches:
        for entry, (start, end) in zip(batch.entries, pairwise(batch.starts), strict=True):
            if others.get(entry.key) == end - start - 1:
                del others[entry.key]
        yield batch
    unsettled.update(map(hour_of, others))


def _write(rows: list[pa.RecordBatch] | Path, *, kept: Path | None, directory: Path) -> Merged | None:
    merged = write_day(rows, kept=kept, target=directory / "day.parquet")
    for source in (kept, rows):
        if isinstance(source, Path):
            source.unlink()
    return merged


def _hold(batches: Iterator[pa.RecordBatch], directory: Path) -> list[pa.RecordBatch] | Path:
    """All batches, or where they are too large for the memory an Arrow file of them."""
    held: deque[pa.RecordBatch] = deque()
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > _BYTES_IN_MEMORY:
            break
    else:
        return list(held)
    target = directory / "rows.arrow"
    with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        while held:
            writer.write_batch(held.popleft())
        for batch in batches:
            writer.write_batch(batch)
    return target


def _compacted(
    listing: DayListing,
    merged: Merged | None,
    quarantined: list[Quarantined],
    *,
    base: Base | None,
    changed: AbstractSet[int],
) -> CompactedDay:
    if base is not None:
        quarantined += [item for item in base.quarantined if hour_of(item.key) not in changed]
    quarantined.sort(key=lambda item: (item.key, -1 if item.position is None else item.position))
    return CompactedDay(
        None if merged is None else merged.path,
        0 if merged is None else merged.rows,
        tuple(quarantined),
        listing,
        _hour_states(listing, base=base, changed=changed, merged=merged),
        sum(len(objects.entries) for hour, objects in listing.hours.items() if hour in changed),
    )


def _hour_states(
    listing: DayListing, *, base: Base | None, changed: AbstractSet[int], merged: Merged | None
) -> dict[int, HourState]:
    """The state of each hour: what is kept of it from the build before, and what this one found."""
    superfluous = {} if merged is None else merged.superfluous
    states = {}
    for hour, objects in listing.hours.items():
        before = base.hours[hour] if base is not None and hour not in changed else HourState("")
        found = {by: count for (own, by), count in superfluous.items() if own == hour}
        others = {*before.superseded_by, *found} - {hour}
        states[hour] = HourState(
            objects.digest, before.duplicates + sum(found.values()), tuple(sorted(others))
        )
    return states
