"""A day's raw objects to its Parquet file: rows of all that is read, then one sorted file.

Where only some hours changed since the last build, the rows of the others are taken from its file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from logs.compaction.base import Base, HourState, hours_to_read, write_kept_rows
from logs.compaction.batches import read_rows
from logs.compaction.convert import SCHEMA
from logs.compaction.merge import Merged, write_day
from logs.layout import parse_raw_key
from tenantadmin.objectstore import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from logs.compaction.batches import Quarantined
    from logs.listing import DayListing
    from tenantadmin.objectstore import ObjectStore

#: Raw bytes of a day whose rows are held in memory until they are written.
_BYTES_IN_MEMORY: Final = 512 << 20


@dataclass(frozen=True, slots=True)
class CompactedDay:
    """A compacted day: its Parquet file (None where no entry was good), what was set aside, its hours.

    ``read`` are the objects that were read for it.
    """

    file: Path | None
    rows: int
    quarantined: tuple[Quarantined, ...]
    hours: Mapping[int, HourState] = field(default_factory=dict)
    read: int = 0

    @property
    def duplicates(self) -> int:
        """Entries that a logId that came before had made superfluous."""
        return sum(hour.duplicates for hour in self.hours.values())


def compact_day(
    store: ObjectStore,
    listing: DayListing,
    *,
    directory: Path,
    base: Base | None = None,
) -> CompactedDay:
    """Compact the listed objects into ``directory``, which the caller makes and removes.

    The rows are a pure function of the listed objects' names and bytes; ``base``, the build before, only
    spares reading what has not changed.

    Raises:
        StoreError: an object could not be read, or the directory not be written.
    """
    try:
        changed: AbstractSet[int] = listing.hours.keys()
        kept = None
        if base is not None:
            changed = hours_to_read(listing, base)
            if not changed >= listing.hours.keys():
                kept = write_kept_rows(store, base, without=changed, directory=directory)
        if kept is None:
            base, changed = None, listing.hours.keys()
        objects = [item for item in listing.objects if item.hour in changed]
        quarantined: list[Quarantined] = []
        batches = read_rows(store, objects, day=listing.day, quarantined=quarantined, directory=directory)
        fits = sum(item.size for item in objects) <= _BYTES_IN_MEMORY
        rows = list(batches) if fits else _write_arrow(batches, directory / "rows.arrow")
        merged = write_day(rows, kept=kept, target=directory / "day.parquet")
        for source in (kept, rows):
            if isinstance(source, Path):
                source.unlink()
    except OSError as error:
        raise StoreError(f"cannot build {listing.day} in {directory}: {error}") from error
    if base is not None:
        quarantined += [item for item in base.quarantined if _hour_of(item) not in changed]
    quarantined.sort(key=lambda item: (item.key, -1 if item.position is None else item.position))
    return CompactedDay(
        None if merged is None else merged.path,
        0 if merged is None else merged.rows,
        tuple(quarantined),
        _hour_states(listing, base=base, changed=changed, merged=merged),
        len(objects),
    )


def _hour_of(item: Quarantined) -> int:
    place = parse_raw_key(item.key)
    if place is None:
        raise AssertionError("a quarantined key is a raw log object's")
    return place.hour


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


def _write_arrow(batches: Iterable[pa.RecordBatch], target: Path) -> Path:
    with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return target
