"""Write a day's new and reused rows to one sorted Parquet file.

Contract: "Query log entry and ``proxy_logs``". The sort keys of the whole day are in memory, about 100 bytes
an entry. All other columns pass through memory a row group at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logs.compaction.convert import PREFIX_HOUR_COLUMN, SCHEMA

if TYPE_CHECKING:
    #: Rows in an Arrow file, or in memory.
    RowSource = Path | list[pa.RecordBatch]

#: Maximum rows in a row group of a day's file. Larger groups were slower.
ROW_GROUP_ROWS: Final = 122_880


def connect(
    *, spill: Path, memory_limit: str = "1GB", threads: int | None = None
) -> duckdb.DuckDBPyConnection:
    """Open a private in-memory DuckDB that spills to ``spill`` and never downloads extensions."""
    return duckdb.connect(
        config={
            "temp_directory": str(spill),
            "memory_limit": memory_limit,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            **({} if threads is None else {"threads": threads}),
        }
    )


#: If runs of neighbouring rows are at least this long on average, slices are faster than single rows.
_MIN_MEAN_RUN: Final = 16

#: Columns whose values hardly repeat. Without dictionaries for them, and at zstd's lowest level, files are
#: a tenth smaller and written in two thirds of the time.
_COLUMNS_WITHOUT_DICTIONARY: Final = frozenset(
    {"timestamp", "responseSize", "cacheExpiresAt", "logId", "queryId", "operationId"}
)

#: With a Bloom filter for it, a look-up by ``logId`` takes a quarter of the time: decision 15.
_LOOK_UP_COLUMN: Final = "logId"

#: Rows that are taken from the batches in one step.
_ROWS_PER_STEP: Final = 20_480

#: Batches of Arrow files that stay mapped: enough for one step, and for some that the next step shares.
_MAX_MAPPED_BATCHES: Final = 16


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A written Parquet file.

    Attributes:
        rows: the number of its rows.
        duplicates: how many entries were dropped because an earlier entry has the same ``logId``, by (hour
            of the dropped entry's prefix, hour of the kept entry's prefix).
    """

    path: Path
    rows: int
    duplicates: Mapping[tuple[int, int], int]


def write_day(
    source: RowSource, *, reused: RowSource | None, target: Path, bounds: Sequence[int] = ()
) -> WrittenFile | None:
    """Write all rows to the Parquet file ``target``. Return None if there are no rows.

    Of rows with the same non-null ``logId``, the first is kept. Rows are sorted so that the contract's
    "latest entry" is the last row: by ``timestamp`` and ``logId`` (null as 0 and ''), and on a tie by object
    key and position in descending order.

    Args:
        source: new rows (`SCHEMA`) in the order of their objects' keys and positions.
        reused: rows of other hours' prefixes, in the order of the previous day's file.
        bounds: timestamps in order. No row group has rows on both sides of one.

    Raises:
        OSError: ``target`` could not be written.
    """
    rows = _Rows()
    rows.add(source)
    first_reused = len(rows.sizes)
    if reused is not None:
        rows.add(reused)
    if not sum(rows.sizes):
        return None
    keys, duplicates = _drop_duplicates(_sort_keys(rows, first_reused=first_reused))
    order = pc.sort_indices(
        keys, sort_keys=[("timestamp", "ascending"), ("logId", "ascending"), ("position", "descending")]
    )
    places = keys.select(["batch", "row"]).take(order)
    groups = list(_row_groups(places.num_rows, [_count_before(keys, bound) for bound in bounds]))
    with pq.ParquetWriter(
        target,
        SCHEMA,
        compression="zstd",
        compression_level=1,
        # The type stubs do not allow a list here.
        use_dictionary=[name for name in SCHEMA.names if name not in _COLUMNS_WITHOUT_DICTIONARY],  # type: ignore[arg-type]
        bloom_filter_options={_LOOK_UP_COLUMN: {"ndv": max(size for _, size in groups)}},
        store_schema=False,
        # A rebuild checks the checksums before it reuses rows.
        write_page_checksum=True,
    ) as writer:
        for start, size in groups:
            # Each table becomes a row group.
            writer.write_table(_take_in_steps(rows, places.slice(start, size)))
    return WrittenFile(target, places.num_rows, duplicates)


def _count_before(keys: pa.Table, bound: int) -> int:
    return int(pc.sum(pc.less(keys["timestamp"], bound)).as_py())


def _row_groups(rows: int, cuts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first row and the number of rows of each row group. Between cuts they are of one size."""
    for first, end in pairwise([0, *cuts, rows]):
        if first < end:
            size = -(-(end - first) // -(-(end - first) // ROW_GROUP_ROWS))
            for start in range(first, end, size):
                yield start, min(size, end - start)


class _Rows:
    """Rows in record batches, in memory or in Arrow files. Only the latest batches of files stay mapped.

    Attributes:
        sizes: the number of rows of each batch.
    """

    def __init__(self) -> None:
        self._batches: list[tuple[Path, int] | pa.RecordBatch] = []
        self.sizes: list[int] = []
        self._mapped: OrderedDict[int, pa.RecordBatch] = OrderedDict()

    def add(self, source: RowSource) -> None:
        """Append the batches of ``source``."""
        if isinstance(source, list):
            self._batches += source
            self.sizes += [batch.num_rows for batch in source]
            return
        reader = pa.ipc.open_file(pa.memory_map(str(source)))
        for number in range(reader.num_record_batches):
            self._batches.append((source, number))
            self.sizes.append(reader.get_batch(number).num_rows)

    def batch(self, number: int) -> pa.RecordBatch:
        """Return a batch. A batch of a file stays mapped as long as the caller uses it."""
        batch = self._batches[number]
        if isinstance(batch, pa.RecordBatch):
            return batch
        if number in self._mapped:
            self._mapped.move_to_end(number)
        else:
            path, index = batch
            self._mapped[number] = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(index)
            if len(self._mapped) > _MAX_MAPPED_BATCHES:
                self._mapped.popitem(last=False)
        return self._mapped[number]

    def take(self, places: pa.Table) -> pa.Table:
        """Return the rows at ``places`` (columns ``batch`` and ``row``), in that order."""
        runs = _runs(places)
        if len(runs) * _MIN_MEAN_RUN <= places.num_rows:
            slices = [self.batch(number).slice(row, count) for number, row, count in runs]
            # Joining small pieces costs less than encoding each.
            return pa.Table.from_batches(slices).combine_chunks()
        numbers = sorted(pc.unique(places["batch"]).to_pylist())
        starts = list(accumulate((self.sizes[number] for number in numbers), initial=0))[:-1]
        index = pc.index_in(places["batch"], value_set=pa.array(numbers))
        start = pa.array(starts).take(index)
        batches = [self.batch(number) for number in numbers]
        return pa.Table.from_batches(batches).take(pc.add(start, places["row"]))


def _take_in_steps(rows: _Rows, places: pa.Table) -> pa.Table:
    """Return the rows at ``places``. Small steps limit how many batches are needed at a time."""
    starts = range(0, places.num_rows, _ROWS_PER_STEP)
    return pa.concat_tables([rows.take(places.slice(start, _ROWS_PER_STEP)) for start in starts])


def _runs(places: pa.Table) -> list[tuple[int, int, int]]:
    """Return the runs of neighbouring rows in ``places``: (number of the batch, first row, row count)."""
    batches: Any = places["batch"].combine_chunks()
    rows: Any = places["row"].combine_chunks()
    continues = pc.and_(pc.equal(pc.pairwise_diff(batches), 0), pc.equal(pc.pairwise_diff(rows), 1))
    first = pc.indices_nonzero(pc.invert(pc.fill_null(continues, False)))  # noqa: FBT003
    starts = first.to_pylist()
    ends = [*starts[1:], places.num_rows]
    return [
        (batch, row, end - start)
        for batch, row, start, end in zip(
            batches.take(first).to_pylist(), rows.take(first).to_pylist(), starts, ends, strict=True
        )
    ]


def _sort_keys(rows: _Rows, *, first_reused: int) -> pa.Table:
    """Return a table with a row for each row of the day, in the order of object keys and positions.

    Columns: ``timestamp`` and ``logId`` (null as 0 and ''), ``identity`` (the ``logId``, null as it is),
    ``hour`` of the prefix, ``batch`` and ``row`` in it, ``position`` in this table.
    """
    names = ["timestamp", "logId", "hour", "batch", "row", "order_in_hour"]
    tables = []
    for number, start in enumerate(accumulate(rows.sizes[:-1], initial=0)):
        batch = rows.batch(number)
        row_numbers = pa.arange(0, batch.num_rows)  # type: ignore[attr-defined]
        order = pc.add(row_numbers, start)
        columns = [
            batch.column("timestamp"),
            batch.column("logId").cast(pa.large_string()),
            batch.column(PREFIX_HOUR_COLUMN),
            pa.repeat(number, batch.num_rows),
            row_numbers,
            # In the previous file, of tied rows the first by object key is the last.
            pc.negate(order) if number >= first_reused else order,
        ]
        tables.append(pa.Table.from_arrays(columns, names=names))
    keys = pa.concat_tables(tables).combine_chunks()
    if first_reused < len(rows.sizes):
        order = pc.sort_indices(keys, sort_keys=[("hour", "ascending"), ("order_in_hour", "ascending")])
        keys = keys.take(order)
    described: dict[str, Any] = {
        "timestamp": pc.fill_null(keys["timestamp"], 0),
        "logId": pc.fill_null(keys["logId"], ""),
        "identity": keys["logId"],
        "hour": keys["hour"],
        "batch": keys["batch"],
        "row": keys["row"],
        "position": pa.arange(0, keys.num_rows),  # type: ignore[attr-defined]
    }
    return pa.table(described)


def _drop_duplicates(keys: pa.Table) -> tuple[pa.Table, dict[tuple[int, int], int]]:
    """Return ``keys`` without rows whose ``logId`` an earlier row has, and `WrittenFile.duplicates`."""
    codes = keys["identity"].combine_chunks().dictionary_encode()
    if len(codes.dictionary) == len(codes) - codes.null_count:
        return keys, {}
    # Codes are given in order of appearance, so a new ``logId`` has a higher code than all rows before.
    code = pc.fill_null(codes.indices.cast(pa.int64()), -1)
    highest_before = pa.concat_arrays([pa.array([-1]), pc.cumulative_max(code)[:-1]])
    is_first = pc.greater(code, highest_before)
    is_kept = pc.or_(is_first, pc.equal(code, -1))
    is_dropped = pc.invert(is_kept)
    hours = pa.table(
        {
            "dropped": keys["hour"].filter(is_dropped),
            "kept": keys["hour"].filter(is_first).take(code.filter(is_dropped)),
        }
    )
    counts = hours.group_by(["dropped", "kept"]).aggregate([([], "count_all")]).to_pylist()
    return keys.filter(is_kept), {(row["dropped"], row["kept"]): row["count_all"] for row in counts}
