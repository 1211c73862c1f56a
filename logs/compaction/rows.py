"""Read a day's raw objects as rows, or reuse the rows of the previous build for unchanged hours.

A build drops duplicates: if several entries have the same ``logId``, its file has only the first. So an hour
may lack entries because another hour has them. Each hour records these other hours. If one of them changes,
the hour must be read again too, because its own entry may now be the first.
"""

from __future__ import annotations

import logging
import shutil
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logs.compaction.convert import PREFIX_HOUR_COLUMN, SCHEMA, Chunk, Converter, connect
from logs.compaction.entries import BadFile, Lines, find_invalid, is_utf8, split
from logs.layout import hour_of, near
from tenantadmin.lib.objectstore.storage import ObjectNotFound, starts_of

if TYPE_CHECKING:
    from logs.compaction.convert import JsonBytes
    from logs.layout import DayListing
    from tenantadmin.lib.objectstore import Batch, Entry, ObjectStore

#: Bytes of entries in a chunk. Each conversion has a fixed cost, so small chunks are slow.
_CHUNK_BYTES: Final = 16 << 20

#: Converter threads (DuckDB releases the interpreter lock), and how many chunks may wait for them.
_THREADS: Final = 2

_MAX_WAITING: Final = 3

#: Entries that DuckDB parses at a time.
_ENTRIES_PER_ARRAY: Final = 256


@dataclass(frozen=True, slots=True)
class InvalidEntry:
    """An invalid entry: its object's key, its position and the reason.

    A position of None means the whole file.
    """

    key: str
    position: int | None
    reason: str


def read_rows(
    batches: Iterable[Batch], *, day: date, quarantined: list[InvalidEntry]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all objects in the order of ``batches``; append bad entries to ``quarantined``."""
    with connect() as engine, ThreadPoolExecutor(_THREADS) as pool:
        converters: SimpleQueue[Converter] = SimpleQueue()
        for _ in range(_THREADS):
            converters.put(Converter(engine, day=day))
        pending: deque[Future[pa.RecordBatch]] = deque()
        for chunk in _chunks(batches, quarantined, near(day)):
            pending.append(pool.submit(_convert, chunk, converters))
            if len(pending) > _MAX_WAITING:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _convert(chunk: Chunk, converters: SimpleQueue[Converter]) -> pa.RecordBatch:
    converter = converters.get()
    try:
        return converter.convert(chunk)
    finally:
        converters.put(converter)


def _chunks(batches: Iterable[Batch], quarantined: list[InvalidEntry], times: range) -> Iterator[Chunk]:
    """Yield the entries of all objects in chunks of about `_CHUNK_BYTES`."""
    arrays: list[pa.Array[Any]] = []
    hours = bytearray()
    chunk_bytes = batch_bytes = 0
    for batch in batches:
        # Arrays refer to the content of their batches, so a few small arrays can keep much of it in memory.
        batch_bytes += len(batch.content)
        for entries, entry_hours in _arrays_of_batch(batch, quarantined, times):
            arrays.append(entries)
            hours += entry_hours
            chunk_bytes += entries.nbytes
            if chunk_bytes >= _CHUNK_BYTES or batch_bytes >= 2 * _CHUNK_BYTES:
                yield Chunk(arrays, hours)
                arrays, hours, chunk_bytes, batch_bytes = [], bytearray(), 0, 0
    if arrays:
        yield Chunk(arrays, hours)


def _arrays_of_batch(
    batch: Batch, quarantined: list[InvalidEntry], times: range
) -> Iterator[tuple[pa.Array[Any], bytes | bytearray]]:
    """Yield arrays of a batch's entries, each with the entries' prefix hours. Quarantine bad entries."""
    count = len(batch.entries)
    hours = _prefix_hours(batch.entries)
    # The usual batches are many objects of one entry each, checked here together, or one object of lines.
    check_together = count > 1 and is_utf8(batch.content)
    replacements: dict[int, Sequence[JsonBytes]] = {}
    invalid = find_invalid(batch.content, batch.starts, times=times) if check_together else range(count)
    for index in invalid:
        key = batch.entries[index].key
        try:
            parts = split(batch.body(index), is_known_utf8=check_together, times=times)
        except BadFile as error:
            quarantined.append(InvalidEntry(key, None, str(error)))
            replacements[index] = ()
            continue
        quarantined += [InvalidEntry(key, position, reason) for position, reason in parts.errors.items()]
        if count == 1 and isinstance(parts.values, Lines):
            lines = parts.values
            replaced: dict[int, Sequence[JsonBytes]] = dict.fromkeys(parts.errors, ())
            replaced |= {position: (text,) for position, text in parts.corrected.items()}
            yield from _arrays(lines.content, lines.starts, hours * len(lines), replaced)
            return
        replacements[index] = [
            parts.corrected.get(position, value)
            for position, value in enumerate(parts.values)
            if position in parts.corrected or position not in parts.errors
        ]
    yield from _arrays(batch.content, batch.starts, hours, replacements)


def _prefix_hours(objects: Sequence[Entry]) -> bytes:
    """Return the prefix hour of each object, one byte each. The objects are sorted by key."""
    first, last = hour_of(objects[0].key), hour_of(objects[-1].key)
    return bytes([first] * len(objects) if first == last else [hour_of(item.key) for item in objects])


def _arrays(
    content: bytes,
    starts: array[int],
    hours: bytes | bytearray,
    replacements: Mapping[int, Sequence[JsonBytes]],
) -> Iterator[tuple[pa.Array[Any], bytes | bytearray]]:
    """Yield arrays of entries with their prefix hours. Only arrays with a replaced entry are copied.

    Args:
        content: entries in UTF-8, with a line break between two.
        starts: the offset of each entry, and last the offset at which another one would start.
        hours: the prefix hour of each entry.
        replacements: by index of an entry, the entries to use instead of it: none, one or several.
    """
    bounds = starts[:]
    bounds[-1] = min(bounds[-1], len(content))
    entries = _string_array(bounds, content)
    replaced = sorted(replacements)
    for first, end in _array_ranges(bounds):
        if bisect_left(replaced, first) == bisect_left(replaced, end):
            yield entries.slice(first, end - first), hours[first:end]
            continue
        copied: list[JsonBytes] = []
        copied_hours = bytearray()
        for index in range(first, end):
            own = replacements.get(index, (content[bounds[index] : bounds[index + 1]],))
            copied += own
            copied_hours += hours[index : index + 1] * len(own)
        yield from _arrays(b"\n".join(copied), starts_of(map(len, copied)), copied_hours, {})


def _array_ranges(bounds: array[int]) -> Iterator[tuple[int, int]]:
    """Yield the index ranges (first, end) of entries that go into one array.

    Args:
        bounds: the offset of each entry, and last the end of the last one.
    """
    first, last = 0, len(bounds) - 1
    while first < last:
        end = bisect_left(bounds, bounds[first] + _CHUNK_BYTES, first + 1, last)
        end = min(end, first + _ENTRIES_PER_ARRAY)
        yield first, end
        first = end


def _string_array(bounds: array[int], content: bytes) -> pa.Array[Any]:
    """Return the texts between ``bounds`` as an Arrow array, without a copy. ``content`` must be UTF-8."""
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_string(), len(bounds) - 1, buffers)


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
