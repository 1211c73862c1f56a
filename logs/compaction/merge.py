"""Checked entries, and rows kept from a build before, to one sorted Parquet file.

Contract: "Query log entry and ``proxy_logs``". The keys of the day are held in memory, about 100 bytes an
entry. Everything else passes through it some thousand rows at a time, already in the order in which it is
written: text is sorted, not 51 columns.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from logs.compaction.convert import SCHEMA, Converter
from logs.compaction.engine import PREFIX_HOUR_COLUMN, ROW_GROUP_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    #: An Arrow file, or what would stand in one.
    Source = Path | list[pa.RecordBatch]

#: Its functions take plain values too, which their published types do not know.
pc: Any = pyarrow.compute

#: Rows that are converted at once, by one thread.
_CHUNK_ROWS: Final = 20_480
#: So long are the runs at least that it is better to string together than to pick each row.
_ROWS_PER_RUN: Final = 16
_THREADS: Final = 2
#: Batches that stay open: those that a chunk's entries come from, and some that the next one shares.
_OPEN_BATCHES: Final = 16


@dataclass(frozen=True, slots=True)
class Merged:
    """A written file: its rows, and the entries that a ``logId`` before them made superfluous.

    ``superfluous`` counts them by (hour of their prefix, hour of the prefix of the entry that stayed).
    """

    path: Path
    rows: int
    superfluous: Mapping[tuple[int, int], int]


class _OtherKeys(Exception):
    """A field that decides the order stands twice: the engine took the first, the reader the last."""


def write_day(shares: Sequence[Source], *, kept: Path | None, day: date, target: Path) -> Merged | None:
    """Write all entries to the Parquet file ``target``; None where there is none.

    Of entries that share a non-null ``logId`` the first stays. Rows stand in the order in which "the latest
    entry" is decided, the latest last: ``timestamp``, ``logId`` (null as 0 and ''), and on a tie the
    first by object key and position after the others. Where a field stands twice in an entry, the first
    counts.

    Args:
        shares: Arrow files or batches of entries (`LINES`), in order of their objects' keys and positions.
        kept: an Arrow file of rows (`SCHEMA`) of other hours' prefixes, in the order of their day's file.

    Raises:
        OSError: ``target`` could not be written.
    """
    entries = _Batches(shares)
    rows = _Batches([] if kept is None else [kept])
    if not entries.count + rows.count:
        return None
    converters = _Converters(day)
    try:
        try:
            return _write(entries, rows, converters=converters, target=target, trust=True)
        except _OtherKeys:
            return _write(entries, rows, converters=converters, target=target, trust=False)
    finally:
        converters.close()


def _write(
    entries: _Batches, rows: _Batches, *, converters: _Converters, target: Path, trust: bool
) -> Merged:
    keys = _keys(entries, rows, converters=None if trust else converters)
    keys, superfluous = _without_repeated(keys)
    order = pc.sort_indices(
        keys, sort_keys=[("timestamp", "ascending"), ("logId", "ascending"), ("place", "descending")]
    )
    places = keys.select(["batch", "row", "timestamp", "identity"]).take(order)
    groups = -(-places.num_rows // ROW_GROUP_ROWS)
    size = -(-places.num_rows // groups)
    with pq.ParquetWriter(
        target, SCHEMA, compression="zstd", compression_level=3, store_schema=False
    ) as writer:
        held: list[pa.Table] = []
        for table in _in_order(entries, rows, places, group_rows=size, converters=converters):
            held.append(table)
            if sum(part.num_rows for part in held) >= size:
                writer.write_table(pa.concat_tables(held), row_group_size=size)
                held = []
        if held:
            writer.write_table(pa.concat_tables(held), row_group_size=size)
    return Merged(target, places.num_rows, superfluous)


class _Batches:
    """The batches of some Arrow files, or of lists. Of the files' only the latest stay mapped."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._places: list[tuple[Path, int] | pa.RecordBatch] = []
        self.sizes: list[int] = []
        for source in sources:
            if isinstance(source, list):
                self._places += source
                self.sizes += [batch.num_rows for batch in source]
                continue
            reader = pa.ipc.open_file(pa.memory_map(str(source)))
            for number in range(reader.num_record_batches):
                self._places.append((source, number))
                self.sizes.append(reader.get_batch(number).num_rows)
        self.starts = list(accumulate(self.sizes, initial=0))
        self._open: OrderedDict[int, pa.RecordBatch] = OrderedDict()

    @property
    def count(self) -> int:
        """Rows of all of them."""
        return self.starts[-1]

    def read(self, number: int) -> pa.RecordBatch:
        """The batch of this number, whose mapping lasts as long as it is used."""
        place = self._places[number]
        if isinstance(place, pa.RecordBatch):
            return place
        if number in self._open:
            self._open.move_to_end(number)
        else:
            path, index = place
            self._open[number] = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(index)
            if len(self._open) > _OPEN_BATCHES:
                self._open.popitem(last=False)
        return self._open[number]

    def pick(self, places: pa.Table) -> pa.Table:
        """The rows at ``places`` (columns ``batch`` and ``row``), in that order."""
        runs = _runs(places)
        if len(runs) * _ROWS_PER_RUN <= places.num_rows:
            # Nothing is copied.
            return pa.Table.from_batches([self.read(number).slice(row, count) for number, row, count in runs])
        numbers = sorted(pc.unique(places["batch"]).to_pylist())
        starts = list(accumulate((self.sizes[number] for number in numbers), initial=0))[:-1]
        which = pc.index_in(places["batch"], value_set=pa.array(numbers, pa.int64()))
        start = pa.array(starts, pa.int64()).take(which)
        batches = [self.read(number) for number in numbers]
        return pa.Table.from_batches(batches).take(pc.add(start, places["row"]))


def _runs(places: pa.Table) -> list[tuple[int, int, int]]:
    """The runs of rows that stand together in a batch: its number, the first row and how many."""
    batches: Any = places["batch"].combine_chunks()
    rows: Any = places["row"].combine_chunks()
    follows = pc.and_(pc.equal(pc.pairwise_diff(batches, 1), 0), pc.equal(pc.pairwise_diff(rows, 1), 1))
    first = pc.indices_nonzero(pc.invert(pc.fill_null(follows, False)))  # noqa: FBT003
    starts = first.to_pylist()
    ends = [*starts[1:], places.num_rows]
    return [
        (batch, row, end - start)
        for batch, row, start, end in zip(
            batches.take(first).to_pylist(), rows.take(first).to_pylist(), starts, ends, strict=True
        )
    ]


class _Converters:
    """A converter for each thread."""

    def __init__(self, day: date) -> None:
        self._all = [Converter(day) for _ in range(_THREADS)]
        self._free: SimpleQueue[Converter] = SimpleQueue()
        for converter in self._all:
            self._free.put(converter)

    def convert(self, lines: pa.Table) -> pa.Table:
        """As `Converter.convert`, from any of as many threads as there are converters."""
        converter = self._free.get()
        try:
            return converter.convert(lines)
        finally:
            self._free.put(converter)

    def close(self) -> None:
        for converter in self._all:
            converter.close()


def _keys(entries: _Batches, rows: _Batches, *, converters: _Converters | None) -> pa.Table:
    """What decides which rows stay and their order: a row for each entry, first by object key to last.

    Columns: ``timestamp`` and ``logId`` (null as 0 and ''), ``identity`` (the ``logId`` as it is), ``hour``
    of the prefix, ``batch`` (those of ``rows`` counted on after those of ``entries``) and ``row`` in it,
    ``place`` in the order of this table.

    Args:
        converters: read the keys from the entries by the engine, instead of taking those that stand beside.
    """
    names = ["timestamp", "logId", "hour", "batch", "row", "inner"]
    tables = []
    for number in range(len(entries.sizes) + len(rows.sizes)):
        is_kept = number >= len(entries.sizes)
        source, index = (rows, number - len(entries.sizes)) if is_kept else (entries, number)
        held: Any = source.read(index)
        if converters is not None and not is_kept:
            held = converters.convert(pa.Table.from_batches([held]))
        own = _count_up(held.num_rows)
        inner = pc.add(own, source.starts[index])
        columns = [
            held.column("timestamp"),
            held.column("logId").cast(pa.large_string()),
            held.column(PREFIX_HOUR_COLUMN),
            pa.repeat(pa.scalar(number, pa.int64()), held.num_rows),
            own,
            # On a tie the first by object key stands last in the file that rows were kept from.
            pc.negate(inner) if is_kept else inner,
        ]
        tables.append(pa.Table.from_arrays(columns, names=names))
    keys = pa.concat_tables(tables).combine_chunks()
    if rows.count:
        keys = keys.take(pc.sort_indices(keys, sort_keys=[("hour", "ascending"), ("inner", "ascending")]))
    return pa.table(
        {
            "timestamp": pc.fill_null(keys["timestamp"], 0),
            "logId": pc.fill_null(keys["logId"], ""),
            "identity": keys["logId"],
            "hour": keys["hour"],
            "batch": keys["batch"],
            "row": keys["row"],
            "place": _count_up(keys.num_rows),
        }
    )


def _without_repeated(keys: pa.Table) -> tuple[pa.Table, dict[tuple[int, int], int]]:
    """``keys`` without the entries whose ``logId`` stands before, and how many there were by hours."""
    codes = keys["identity"].combine_chunks().dictionary_encode()
    if len(codes.dictionary) == len(codes) - codes.null_count:
        return keys, {}
    # Numbers are given out in the order of the entries: the first of its kind is above all before it.
    numbers = pc.fill_null(codes.indices.cast(pa.int64()), -1)
    before = pa.concat_arrays([pa.array([-1], pa.int64()), pc.cumulative_max(numbers)[:-1]])
    is_first = pc.greater(numbers, before)
    stays = pc.or_(is_first, pc.equal(numbers, -1))
    goes = pc.invert(stays)
    pairs = {
        "hour": keys["hour"].filter(goes),
        "by": keys["hour"].filter(is_first).take(numbers.filter(goes)),
    }
    counted = pa.table(pairs).group_by(["hour", "by"]).aggregate([([], "count_all")]).to_pylist()
    return keys.filter(stays), {(row["hour"], row["by"]): row["count_all"] for row in counted}


def _in_order(
    entries: _Batches, rows: _Batches, places: pa.Table, *, group_rows: int, converters: _Converters
) -> Iterator[pa.Table]:
    """The rows at ``places`` in chunks that end with each row group, some converted ahead."""
    bounds = [
        (at, min(_CHUNK_ROWS, group + group_rows - at))
        for group in range(0, places.num_rows, group_rows)
        for at in range(group, min(group + group_rows, places.num_rows), _CHUNK_ROWS)
    ]
    with ThreadPoolExecutor(_THREADS) as pool:
        ahead: deque[Future[pa.Table]] = deque()
        for at, length in bounds:
            chunk = places.slice(at, length)
            ahead.append(_start(pool, entries, rows, chunk, converters=converters))
            if len(ahead) > _THREADS + 1:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _start(
    pool: ThreadPoolExecutor, entries: _Batches, rows: _Batches, chunk: pa.Table, *, converters: _Converters
) -> Future[pa.Table]:
    """Pick the entries and rows of a chunk, and have the entries converted and both put in order."""
    first_kept = len(entries.sizes)
    is_kept = pc.greater_equal(chunk["batch"], first_kept)
    wanted = chunk.filter(pc.invert(is_kept)) if rows.count else chunk
    lines = entries.pick(wanted) if wanted.num_rows else None
    others = chunk.filter(is_kept) if rows.count else chunk.slice(0, 0)
    kept = None
    if others.num_rows:
        own = pc.subtract(others["batch"], first_kept)
        kept = rows.pick(pa.table({"batch": own, "row": others["row"]}))
    return pool.submit(_finish, converters, wanted, lines, kept, is_kept)


def _finish(
    converters: _Converters,
    wanted: pa.Table,
    lines: pa.Table | None,
    kept: pa.Table | None,
    is_kept: pa.ChunkedArray[Any],
) -> pa.Table:
    if lines is None:
        assert kept is not None  # noqa: S101  # a chunk has rows
        return kept
    made = converters.convert(lines)
    times = pc.fill_null(made["timestamp"], 0)
    same_times = times.equals(wanted["timestamp"])
    if not same_times or not made["logId"].cast(pa.large_string()).equals(wanted["identity"]):
        raise _OtherKeys
    if kept is None:
        return made
    among_kept = pc.cumulative_sum(is_kept.cast(pa.int64()))
    among_made = pc.subtract(pc.add(_count_up(len(is_kept)), 1), among_kept)
    index = pc.if_else(is_kept, pc.add(among_kept, made.num_rows), among_made)
    return pa.concat_tables([made, kept]).take(pc.subtract(index, 1))


def _count_up(count: int) -> pa.Array[Any]:
    counted: pa.Array[Any] = pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)
    return counted
