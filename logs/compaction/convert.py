"""Convert log entries to columns. Contract: "Query log entry and ``proxy_logs``"."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from logs.columns import COLUMNS, SqlType
from logs.compaction.engine import HOUR_COLUMN, PREFIX_HOUR_COLUMN
from logs.layout import DAY_MS, HOUR_MS, day_start_ms
from logs.quoting import quote_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

_ARROW_TYPES: Final[dict[SqlType, pa.DataType]] = {
    SqlType.VARCHAR: pa.string(),
    SqlType.BIGINT: pa.int64(),
    SqlType.INTEGER: pa.int32(),
    SqlType.BOOLEAN: pa.bool_(),
}
#: The columns of a day's file, in order: the contract's columns and two internal ones.
SCHEMA: Final = pa.schema(
    [
        *((column.name, _ARROW_TYPES[column.type]) for column in COLUMNS),
        (HOUR_COLUMN, pa.int8()),
        (PREFIX_HOUR_COLUMN, pa.int8()),
    ]
)
_ENTRY_STRUCTURE: Final = json.dumps({column.name: column.type.value for column in COLUMNS})
_INPUT_SCHEMA: Final = pa.schema([("entry_json", pa.large_string())])


def connect() -> duckdb.DuckDBPyConnection:
    """Open a DuckDB for converters. Each converter uses its own cursor."""
    return duckdb.connect(
        config={
            "threads": 1,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )


class Chunk(NamedTuple):
    """Log entries that are converted together.

    Attributes:
        arrays: the entries as JSON. DuckDB parses one array at a time. Small arrays stay in the processor's
            cache, which saves a third of the time.
        hours: the prefix hour of each entry, one byte each.
    """

    arrays: Sequence[pa.Array[Any]]
    hours: bytes | bytearray


class Converter:
    """Converts log entries to rows (`SCHEMA`). Threads must not share a converter."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, *, day: date) -> None:
        self._engine = engine.cursor()
        self._start = day_start_ms(day)

    def convert(self, chunk: Chunk) -> pa.RecordBatch:
        """Return a row for each entry, in order. The chunk has at least one entry, and all are checked.

        If an entry has a field more than once, the first value counts. Lists and objects in columns of JSON
        text are written without spaces.
        """
        batches = [pa.record_batch([array], schema=_INPUT_SCHEMA) for array in chunk.arrays]
        source = self._engine.from_arrow(pa.RecordBatchReader.from_batches(_INPUT_SCHEMA, batches))
        parsed = source.project(
            f"from_json(entry_json, {quote_text(_ENTRY_STRUCTURE)}) AS entry"
        ).to_arrow_table()
        (columns,) = pa.Table.from_struct_array(parsed["entry"]).combine_chunks().to_batches()
        if columns.num_rows != len(chunk.hours):
            raise AssertionError(f"{len(chunk.hours)} entries gave {columns.num_rows} rows")
        return self._add_hours(columns.columns, chunk.hours)

    def _add_hours(self, columns: Sequence[pa.Array[Any]], hours: bytes | bytearray) -> pa.RecordBatch:
        prefix_hours = pa.Array.from_buffers(pa.int8(), len(hours), [None, pa.py_buffer(hours)])
        since_midnight = pc.subtract(columns[SCHEMA.get_field_index("timestamp")], self._start)
        in_day = pc.fill_null(
            pc.and_(pc.greater_equal(since_midnight, 0), pc.less(since_midnight, DAY_MS)), fill_value=False
        )
        own_hours = pc.divide(pc.if_else(in_day, since_midnight, 0), HOUR_MS).cast(pa.int8())
        arrays = [
            *(
                pc.fill_null(array, 0) if column.never_null else array
                for column, array in zip(COLUMNS, columns, strict=True)
            ),
            pc.if_else(in_day, own_hours, prefix_hours),
            prefix_hours,
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
