"""Reuse rows of a day's previous build, for the hours whose objects have not changed.

A build drops duplicates: if several entries have the same ``logId``, its file has only the first. So an hour
may lack entries because another hour has them. Each hour records these other hours. If one of them changes,
the hour must be read again too, because its own entry may now be the first.
"""

from __future__ import annotations

import logging
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logs.compaction.convert import SCHEMA
from logs.compaction.engine import PREFIX_HOUR_COLUMN
from tenantadmin.lib.objectstore.keys import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from logs.compaction.rows import InvalidEntry
    from logs.listing import DayListing
    from tenantadmin.lib.objectstore import ObjectStore

_log = logging.getLogger(__name__)

#: If a larger share of the day's bytes must be read, the whole day is read. Reusing the rest would save
#: nothing.
_MAX_SHARE_TO_READ: Final = 0.75
_BATCH_ROWS: Final = 8_192


@dataclass(frozen=True, slots=True)
class HourState:
    """One hour of a build. `logs.models.Partition` stores it as JSON.

    Attributes:
        digest: a hash of the names, sizes and etags of the objects under the hour's prefix.
        duplicates: the number of entries that were dropped as duplicates.
        superseded_by: the other hours that have the first entry in place of a dropped one.
    """

    digest: str
    duplicates: int = 0
    superseded_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PreviousBuild:
    """The previous build of a day: key and row count of its file, its hours and its quarantined entries."""

    file: str
    rows: int
    hours: Mapping[int, HourState]
    quarantined: Sequence[InvalidEntry]


def hours_to_read(listing: DayListing, previous: PreviousBuild) -> AbstractSet[int]:
    """Return the hours that must be read again; all hours if reuse would save too little."""
    before = {hour: state.digest for hour, state in previous.hours.items()}
    present = {hour: objects.digest for hour, objects in listing.hours.items()}
    all_hours = present.keys() | before.keys()
    changed = {hour for hour in all_hours if present.get(hour) != before.get(hour)}
    changed |= {hour for hour, state in previous.hours.items() if not changed.isdisjoint(state.superseded_by)}
    size = sum(listing.hours[hour].size for hour in changed if hour in listing.hours)
    return changed if size <= _MAX_SHARE_TO_READ * listing.size else all_hours


def write_reused_rows(
    store: ObjectStore, previous: PreviousBuild, *, except_hours: AbstractSet[int], directory: Path
) -> Path | None:
    """Write the rows of the previous build to an Arrow file, except the rows of ``except_hours``.

    Returns None if the previous file is missing, damaged or has other columns.

    Raises:
        OSError, StoreError: the disk or the store failed. The previous file may still be good.
    """
    copy, target = directory / "previous.parquet", directory / "reused.arrow"
    excluded = pa.array(sorted(except_hours))
    try:
        with store.open(previous.file) as stream, copy.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)
        with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
            for batch in read_batches(copy, rows=previous.rows):
                is_reused = pc.invert(pc.is_in(batch.column(PREFIX_HOUR_COLUMN), excluded))
                writer.write_batch(batch.filter(is_reused))
    except (ObjectNotFound, UnusableFile) as error:
        _log.warning("Cannot reuse the file %s, reading the whole day instead: %s", previous.file, error)
        target.unlink(missing_ok=True)
        return None
    finally:
        copy.unlink(missing_ok=True)
    return target


class UnusableFile(Exception):
    """The file is damaged, or another version of this code wrote it with other columns."""


@contextmanager
def refusing_damage() -> Iterator[None]:
    """Raise `UnusableFile` if Arrow cannot read a file.

    Raises:
        OSError: the disk failed.
    """
    try:
        yield
    except OSError as error:
        # Arrow raises OSError without errno for most data that it cannot decode.
        if error.errno is not None:
            raise
        raise UnusableFile(str(error)) from error
    except (pa.ArrowException, ValueError) as error:
        raise UnusableFile(str(error)) from error


def read_batches(path: Path, *, rows: int, groups: list[int] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the file of a day or an hour, and verify the checksums of its pages.

    Args:
        rows: the number of rows of the file.
        groups: the row groups to read; None for all.

    Raises:
        UnusableFile: the file is damaged, or has other columns or another number of rows.
        OSError: the disk failed.
    """
    count = 0
    with refusing_damage(), pq.ParquetFile(path, page_checksum_verification=True) as parquet:
        if not parquet.schema_arrow.equals(SCHEMA):
            raise UnusableFile("it has other columns")
        if groups is not None:
            rows += sum(parquet.metadata.row_group(number).num_rows for number in groups)
            rows -= parquet.metadata.num_rows
        for batch in parquet.iter_batches(_BATCH_ROWS, row_groups=groups):
            count += batch.num_rows
            yield batch
    if count != rows:
        raise UnusableFile(f"it has {count} rows, not {rows}")
