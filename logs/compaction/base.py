"""What a rebuild may take from the build before: the rows of hours whose objects are the same.

An entry that a repeated ``logId`` made superfluous is not in the file. Each hour therefore remembers the
hours whose entries stayed in place of its own: where one of those changes, it is read again too.
"""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from logs.compaction.convert import SCHEMA
from logs.compaction.engine import PREFIX_HOUR_COLUMN
from tenantadmin.arrow import pc
from tenantadmin.objectstore import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from logs.compaction.batches import Quarantined
    from logs.listing import DayListing
    from tenantadmin.objectstore import ObjectStore

_log = logging.getLogger(__name__)

#: Above this share of a day's bytes, reading everything costs no more than keeping the rest.
_WORTHWHILE: Final = 0.75
_ROWS_AT_ONCE: Final = 8_192


@dataclass(frozen=True, slots=True)
class HourState:
    """The objects under one hour's prefix as a build read them.

    Attributes:
        digest: over their names, sizes and etags.
        duplicates: their entries that an earlier one with the same ``logId`` made superfluous.
        superseded_by: the other hours under which those earlier ones stand.
    """

    digest: str
    duplicates: int = 0
    superseded_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Base:
    """The build before: the key of its file, how many rows that has, its hours, and what it set aside."""

    file: str
    rows: int
    hours: Mapping[int, HourState]
    quarantined: Sequence[Quarantined]


def hours_to_read(listing: DayListing, base: Base) -> AbstractSet[int]:
    """The hours whose rows cannot be taken from ``base``; all of the day where that saves too little."""
    before = {hour: state.digest for hour, state in base.hours.items()}
    present = {hour: objects.digest for hour, objects in listing.hours.items()}
    every = present.keys() | before.keys()
    changed = {hour for hour in every if present.get(hour) != before.get(hour)}
    changed |= {hour for hour, state in base.hours.items() if not changed.isdisjoint(state.superseded_by)}
    size = sum(listing.hours[hour].size for hour in changed if hour in listing.hours)
    return changed if size <= _WORTHWHILE * listing.size else every


def write_kept_rows(
    store: ObjectStore, base: Base, *, without: AbstractSet[int], directory: Path
) -> Path | None:
    """The rows of ``base`` but for the hours ``without`` as an Arrow file; None where they cannot be had.

    That is so where its file is gone, damaged or of other columns.

    Raises:
        OSError, StoreError: the store or the directory failed, which says nothing of the file.
    """
    copy, target = directory / "base.parquet", directory / "kept.arrow"
    left_out = pa.array(sorted(without), pa.int8())
    try:
        with store.open(base.file) as stream, copy.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)
        with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
            for batch in _batches(copy, rows=base.rows):
                stays = pc.invert(pc.is_in(batch.column(PREFIX_HOUR_COLUMN), left_out))
                writer.write_batch(batch.filter(stays))
    except (ObjectNotFound, _UnusableError) as error:
        _log.warning("The build %s cannot be used; the whole day is read anew: %s", base.file, error)
        target.unlink(missing_ok=True)
        return None
    finally:
        copy.unlink(missing_ok=True)
    return target


class _UnusableError(Exception):
    """A file is not what a build wrote, or not what this version would write."""


def _batches(path: Path, *, rows: int) -> Iterator[pa.RecordBatch]:
    """All rows of a day's file, whose pages are checked against their checksums.

    Raises:
        _UnusableError: it is damaged, or of other columns: those of another version would be made of the
            objects anew.
        OSError: the disk failed.
    """
    found = 0
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as parquet:
            if not parquet.schema_arrow.equals(SCHEMA):
                raise _UnusableError("it has other columns")
            for batch in parquet.iter_batches(_ROWS_AT_ONCE):
                found += batch.num_rows
                yield batch
    except OSError as error:
        # Arrow raises it for most of what it cannot decode, too.
        if error.errno is not None:
            raise
        raise _UnusableError(str(error)) from error
    except (pa.ArrowException, ValueError) as error:
        raise _UnusableError(str(error)) from error
    if found != rows:
        raise _UnusableError(f"it has {found} rows, not {rows}")
