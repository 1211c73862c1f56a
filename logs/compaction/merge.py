"""Rows of a day, new ones and those kept from a build before, to one sorted Parquet file.

Contract: "Query log entry and ``proxy_logs``". The keys of the day are held in memory, about 100 bytes an
entry. Everything else passes through it a row group at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from logs.compaction.convert import SCHEMA
from logs.compaction.engine import PREFIX_HOUR_COLUMN, ROW_GROUP_ROWS
from tenantadmin.arrow import pc

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    #: An Arrow file, or what would stand in one.
    Source = Path | list[pa.RecordBatch]

#: So long are the runs at least that it is better to string together than to pick each row.
_ROWS_PER_RUN: Final = 16
#: Columns whose values hardly repeat: without dictionaries, and at zstd's lowest level, files are a tenth
#: smaller and written in two thirds of the time.
_DISTINCT: Final = frozenset(
    {"timestamp", "responseSize", "cacheExpiresAt", "logId", "queryId", "operationId"}
)
#: Rows that are picked at once.
_CHUNK_ROWS: Final = 20_480
#: Batches that stay open: those that a chunk's rows come from, and some that the next one shares.
_OPEN_BATCHES: Final = 16


@dataclass(frozen=True, slots=True)
class Merged:
    """A written file: its rows, and the entries that a ``logId`` before them made superfluous.

    ``superfluous`` counts them by (hour of their prefix, hour of the prefix of the entry that stayed).
    """

    path: Path
    rows: int
    superfluous: Mapping[tuple[int, int], int]


def write_day(source: Source, *, kept: Path | None, target: Path) -> Merged | None:
    """Write all rows to the Parquet file ``target``; None where there is none.

    Of rows that share a non-null ``logId`` the first stays. They stand in the order in which "the latest
    entry" is decided, the latest last: ``timestamp``, ``logId`` (null as 0 and ''), and on a tie the
    first by object key and position after the others.

    Args:
        source: an Arrow file or batches of rows (`SCHEMA`), in order of their objects' keys and positions.
        kept: an Arrow file of rows of other hours' prefixes, in the order of their day's file.

    Raises:
        OSError: ``target`` could not be written.
    """
    rows = _Batches()
    rows.add(source)
    first_kept = len(rows.sizes)
    if kept is not None:
        rows.add(kept)
    if not sum(rows.sizes):
        return None
    keys, superfluous = _without_repeated(_keys(rows, first_kept=first_kept))
    order = pc.sort_indices(
        keys, sort_keys=[("timestamp", "ascending"), ("logId", "ascending"), ("place", "descending")]
    )
    places = keys.select(["batch", "row"]).take(order)
    groups = -(-places.num_rows // ROW_GROUP_ROWS)
    size = -(-places.num_rows // groups)
    with pq.ParquetWriter(
        target,
        SCHEMA,
        compression="zstd",
        compression_level=1,
        # The published types know no list here.
        use_dictionary=[name for name in SCHEMA.names if name not in _DISTINCT],  # type: ignore[arg-type]
        store_schema=False,
        # By which a rebuild that keeps rows of this file sees that they are what was written.
        write_page_checksum=True,
    ) as writer:
        for start in range(0, places.num_rows, size):
            group = places.slice(start, size)
            writer.write_table(_pick_all(rows, group), row_group_size=size)
    return Merged(target, places.num_rows, superfluous)


class _Batches:
    """The batches of Arrow files, or of lists. Of the files' only the latest stay mapped."""

    def __init__(self) -> None:
        self._places: list[tuple[Path, int] | pa.RecordBatch] = []
        self.sizes: list[int] = []
        self._open: OrderedDict[int, pa.RecordBatch] = OrderedDict()

    def add(self, source: Source) -> None:
        """Append the batches of ``source``."""
        if isinstance(source, list):
            self._places += source
            self.sizes += [batch.num_rows for batch in source]
            return
        reader = pa.ipc.open_file(pa.memory_map(str(source)))
        for number in range(reader.num_record_batches):
            self._places.append((source, number))
            self.sizes.append(reader.get_batch(number).num_rows)

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
            slices = [self.read(number).slice(row, count) for number, row, count in runs]
            # Encoding many small ones costs more than stringing them together.
            return pa.Table.from_batches(slices).combine_chunks()
        numbers = sorted(pc.unique(places["batch"]).to_pylist())
        starts = list(accumulate((self.sizes[number] for number in numbers), initial=0))[:-1]
        which = pc.index_in(places["batch"], value_set=pa.array(numbers, pa.int64()))
        start = pa.array(starts, pa.int64()).take(which)
        batches = [self.read(number) for number in numbers]
        return pa.Table.from_batches(batches).take(pc.add(start, places["row"]))


def _pick_all(rows: _Batches, places: pa.Table) -> pa.Table:
    """The rows at ``places``, which are picked some thousand at a time."""
    starts = range(0, places.num_rows, _CHUNK_ROWS)
    return pa.concat_tables([rows.pick(places.slice(start, _CHUNK_ROWS)) for start in starts])


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


def _keys(rows: _Batches, *, first_kept: int) -> pa.Table:
    """What decides which rows stay and their order: a row for each, first by object key to last.

    Columns: ``timestamp`` and ``logId`` (null as 0 and ''), ``identity`` (the ``logId`` as it is), ``hour``
    of the prefix, ``batch`` and ``row`` in it, ``place`` in the order of this table.
    """
    names = ["timestamp", "logId", "hour", "batch", "row", "inner"]
    tables = []
    for number, start in enumerate(accumulate(rows.sizes[:-1], initial=0)):
        held = rows.read(number)
        own = _count_up(held.num_rows)
        inner = pc.add(own, start)
        columns = [
            held.column("timestamp"),
            held.column("logId").cast(pa.large_string()),
            held.column(PREFIX_HOUR_COLUMN),
            pa.repeat(pa.scalar(number, pa.int64()), held.num_rows),
            own,
            # On a tie the first by object key stands last in the file that rows were kept from.
            pc.negate(inner) if number >= first_kept else inner,
        ]
        tables.append(pa.Table.from_arrays(columns, names=names))
    keys = pa.concat_tables(tables).combine_chunks()
    if first_kept < len(rows.sizes):
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


def _count_up(count: int) -> pa.Array[Any]:
    counted: pa.Array[Any] = pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)
    return counted
