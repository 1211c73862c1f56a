"""Compact a day's raw objects into its Parquet files, one for each span of hours.

An hour's file has the rows of the objects under one hour's prefix, whatever their timestamps are. A span's
file has the rows whose timestamps are in one hour. There are 26 spans: before the day, its hours, after it.

If only some hours changed since the previous build, the rows of the other hours come from its file.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logs.compaction.convert import PREFIX_HOUR_COLUMN, SCHEMA
from logs.compaction.rows import (
    HourState,
    InvalidEntry,
    PreviousBuild,
    hours_to_read,
    read_batches,
    read_rows,
    refusing_damage,
    write_reused_rows,
)
from logs.compaction.writer import WrittenFile, connect, write_day
from logs.layout import HOUR_MS, day_start_ms, hour_of, hour_of_any, mark_as_changed
from logs.quoting import quote_text, quote_texts, quote_value
from tenantadmin.lib.objectstore import StoreError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from logs.compaction.writer import WrittenFile
    from logs.layout import DayListing
    from tenantadmin.lib.objectstore import Batch, Entry, ObjectStore

#: The most names that are kept, and the most bytes that they take together.
MAX_NAMES: Final = 1_000

_MAX_BYTES: Final = 64 << 10

#: Names with more characters are left out: no pattern of a rule is as long.
_MAX_LENGTH: Final = 2_000

_COUNT: Final = f"""
WITH lists AS (
    SELECT if(json_valid(tables), tables, '[]') AS tables, count(*) AS entries
    FROM read_parquet(?) WHERE tables IS NOT NULL GROUP BY tables
),
texts AS (
    SELECT entries, unnest(list_distinct(list_transform(
        list_filter(json_extract(tables, '$[*]'), lambda item: json_type(item) = 'VARCHAR'),
        lambda item: left(item->>'$', {_MAX_LENGTH + 1})
    ))) AS name
    FROM lists
)
SELECT name, sum(entries)::BIGINT FROM texts
GROUP BY name ORDER BY 2 DESC, 1 LIMIT {MAX_NAMES + 1}"""  # noqa: S608 - made of constants


@dataclass(frozen=True, slots=True)
class TableNames:
    """The names of tables in a log.

    Attributes:
        counts: by name, as the log spells it, the number of entries; the most frequent names.
        complete: False if the log has more names.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    complete: bool = True

    @classmethod
    def of(cls, counted: Iterable[tuple[str, int]], *, complete: bool = True) -> TableNames:
        """Return the most frequent of the counted names, as many as fit."""
        kept: dict[str, int] = {}
        size = 0
        for name, count in sorted(counted, key=lambda item: (-item[1], item[0])):
            length = len(name.encode())
            # JSON in PostgreSQL cannot hold NUL, and rules are such JSON: no condition names such a table.
            if (
                len(name) > _MAX_LENGTH
                or "\0" in name
                or len(kept) == MAX_NAMES
                or size + length > _MAX_BYTES
            ):
                complete = False
            else:
                kept[name] = count
                size += length
        return cls(kept, complete)

    @classmethod
    def merge(cls, parts: Iterable[Mapping[str, Any] | None]) -> TableNames:
        """Merge stored names of hours or days. None, which an earlier release wrote, has no names."""
        counts: Counter[str] = Counter()
        complete = True
        for part in parts:
            counts.update({} if part is None else part["counts"])
            complete &= part is None or part["complete"]
        return cls.of(counts.items(), complete=complete)


def count_table_names(file: Path) -> TableNames:
    """Count the names in a day's Parquet file."""
    with connect(spill=file.parent / "spill") as engine:
        return TableNames.of(engine.execute(_COUNT, [str(file)]).fetchall())


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


#: The number of spans. Span 0 is before the day, span 25 after it.
SPANS: Final = 26

#: The maximum rows of an hour in another span that get a digest. With more, every build counts as a change.
_MAX_DIGESTED: Final = 50_000

#: Up to this many ``logId``s are looked up one by one.
_MAX_LITERALS: Final = 100


@dataclass(frozen=True, slots=True)
class Span:
    """The rows of an hour's file in one span: their number, and their digest (empty for the own span)."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class HourFile:
    """An hour's Parquet file. Rows are left out whose ``logId`` is in ``dropped``: an earlier hour has it."""

    path: Path
    rows: int
    dropped: pa.Array[Any] | None = None


def own_span(hour: int) -> int:
    """Return the span of the timestamps in an hour (0 to 23)."""
    return hour + 1


def span_bounds(day: date) -> list[int]:
    """Return the timestamps at which one span ends and the next begins."""
    return [day_start_ms(day) + hour * HOUR_MS for hour in range(SPANS - 1)]


def find_spans(path: Path, *, day: date, hour: int) -> dict[int, Span]:
    """Return the spans of the rows of an hour's file, which was written with `span_bounds`."""
    spans = {}
    with pq.ParquetFile(path) as parquet:
        for span, groups in groupby(_spans_of_groups(parquet.metadata, day), key=itemgetter(0)):
            numbers = [number for _, number in groups]
            rows = sum(parquet.metadata.row_group(number).num_rows for number in numbers)
            has_digest = span != own_span(hour) and rows <= _MAX_DIGESTED
            spans[span] = Span(rows, _digest(parquet.read_row_groups(numbers)) if has_digest else "")
    return spans


def write_span(hours: Sequence[HourFile], *, span: int, day: date, directory: Path) -> WrittenFile | None:
    """Write the rows of one span to a Parquet file in ``directory``. Return None if there are none.

    The rows and their order are the same as in a file of the whole day.

    Args:
        hours: the files with rows in the span, in the order of hours.

    Raises:
        UnusableFile: a file is damaged.
    """
    rows = collect_rows(
        (batch for hour in hours for batch in _read_span(hour, span=span, day=day)), directory
    )
    written = write_day([], reused=rows, target=directory / "day.parquet")
    if not isinstance(rows, list):
        rows.unlink()
    return written


def _read_span(hour: HourFile, *, span: int, day: date) -> Iterator[pa.RecordBatch]:
    with refusing_damage():
        metadata = pq.read_metadata(hour.path)
    groups = [number for other, number in _spans_of_groups(metadata, day) if other == span]
    for batch in read_batches(hour.path, rows=hour.rows, groups=groups):
        if hour.dropped is None:
            yield batch
        else:
            yield batch.filter(pc.invert(pc.is_in(batch.column("logId"), value_set=hour.dropped)))


def _spans_of_groups(metadata: pq.FileMetaData, day: date) -> Iterator[tuple[int, int]]:
    """Yield the span and the number of each row group. All rows of a row group are in one span."""
    for number in range(metadata.num_row_groups):
        column = metadata.row_group(number).column(SCHEMA.get_field_index("timestamp"))
        statistics: Any = column.statistics
        # Rows without a timestamp are at 0.
        timestamp = statistics.min if statistics.has_min_max else 0
        yield min(max((timestamp - day_start_ms(day)) // HOUR_MS + 1, 0), SPANS - 1), number


def _digest(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    # As Parquet, because Arrow's own format has some bits of the rows beside a slice.
    pq.write_table(table, sink, compression="none", use_dictionary=False)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def write_repeats(
    connection: DuckDBPyConnection,
    *,
    changed: Collection[str],
    replaced: Collection[str],
    unchanged: Mapping[int, str],
    before: str | None,
    target: Path,
) -> None:
    """Write which hours share a ``logId``: ``logId``, ``hour``, and ``kept``, the first of its hours.

    Args:
        changed: the addresses of the files of the hours that changed.
        replaced: the addresses of the files that these replace, if they exist. Their ids are not looked up
            again.
        unchanged: the addresses of the other hours' files.
        before: the address of the file that this function wrote for ``replaced`` and ``unchanged``.
    """
    # All parts are quoted or numbers.
    present = _ids([*changed, *unchanged.values()])
    if replaced or unchanged:
        connection.execute(f"CREATE TEMP TABLE added AS {_ids(changed)} EXCEPT {_ids(replaced)}")
        present += f" AND logId IN ({_added(connection)})"
    earlier = ""
    if before is not None:
        source = f"FROM read_parquet({quote_text(before)})"
        hours = ", ".join(map(str, unchanged)) or "NULL"
        earlier = (
            f"UNION SELECT logId, hour {source} WHERE hour IN ({hours})"
            f" UNION SELECT logId, hour {source} SEMI JOIN ({_ids(changed)}) USING (logId, hour)"
        )
    connection.execute(
        f"""
        COPY (
            WITH ids AS ({present}),
            repeated AS (SELECT logId FROM ids GROUP BY logId HAVING count(*) > 1)
            SELECT logId, hour, min(hour) OVER (PARTITION BY logId) AS kept
            FROM (SELECT logId, hour FROM ids SEMI JOIN repeated USING (logId) {earlier})
            ORDER BY hour, logId
        ) TO {quote_text(target)} (FORMAT parquet)
        """  # noqa: S608
    )


def _ids(files: Collection[str]) -> str:
    """Return a query of the ``logId``s of these files, with the hours of their objects' prefixes."""
    if not files:
        return "SELECT NULL::VARCHAR AS logId, NULL::TINYINT AS hour WHERE false"
    source = f"read_parquet({quote_texts(files)}, hive_partitioning = false)"
    return f"SELECT logId, {PREFIX_HOUR_COLUMN} AS hour FROM {source} WHERE logId IS NOT NULL"  # noqa: S608


def _added(connection: DuckDBPyConnection) -> str:
    """Return the SQL of the added ``logId``s. Only for literals does DuckDB look into Bloom filters."""
    few = connection.execute(f"SELECT DISTINCT logId FROM added LIMIT {_MAX_LITERALS + 1}").fetchall()  # noqa: S608
    if len(few) > _MAX_LITERALS:
        return "SELECT logId FROM added"
    return ", ".join(quote_value(log_id) for (log_id,) in few) or "NULL"


def read_dropped(path: Path) -> pa.Table:
    """Return ``logId``, ``hour`` and ``kept`` of the rows that the day leaves out, by hour."""
    table = pq.read_table(path)
    return table.filter(pc.greater(table["hour"], table["kept"]))
