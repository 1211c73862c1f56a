"""Entries to columns. Contract: "Query log entry and ``proxy_logs``"."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from logs.columns import COLUMNS, SqlType
from logs.compaction.engine import HOUR_COLUMN, PREFIX_HOUR_COLUMN
from logs.compaction.engine import text as quoted
from logs.layout import DAY_MS, HOUR_MS, day_start_ms
from tenantadmin.arrow import pc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

_ARROW_TYPES: Final[dict[SqlType, pa.DataType]] = {
    SqlType.VARCHAR: pa.string(),
    SqlType.BIGINT: pa.int64(),
    SqlType.INTEGER: pa.int32(),
    SqlType.BOOLEAN: pa.bool_(),
}
#: What a day's file holds, in order: the contract's columns, and two of our own.
SCHEMA: Final = pa.schema(
    [
        *((column.name, _ARROW_TYPES[column.type]) for column in COLUMNS),
        (HOUR_COLUMN, pa.int8()),
        (PREFIX_HOUR_COLUMN, pa.int8()),
    ]
)
_ENTRY: Final = json.dumps({column.name: column.type.value for column in COLUMNS})
_TEXTS: Final = pa.schema([("text", pa.large_string())])


def connect() -> duckdb.DuckDBPyConnection:
    """An engine for converters: each works with a cursor of it."""
    return duckdb.connect(
        config={
            "threads": 1,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )


class Entries(NamedTuple):
    """What is converted together.

    Attributes:
        texts: an entry each. The engine parses what stands in an array at once: few, so that it stays in the
            processor's cache, which takes two thirds of the time.
        hours: of the entries' prefixes, a byte for each.
    """

    texts: Sequence[pa.Array[Any]]
    hours: bytes | bytearray


class Converter:
    """Makes rows (`SCHEMA`) of entries, in their order. Not to be shared between threads."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, *, day: date) -> None:
        self._engine = engine.cursor()
        self._start = day_start_ms(day)

    def convert(self, entries: Entries) -> pa.RecordBatch:
        """Make rows of what is known to be entries; of at least one.

        Of a field that stands twice in one the first counts. Lists and objects in columns of JSON text are
        written without spaces.
        """
        batches = [pa.record_batch([texts], schema=_TEXTS) for texts in entries.texts]
        texts = self._engine.from_arrow(pa.RecordBatchReader.from_batches(_TEXTS, batches))
        parsed = texts.project(f"from_json(text, {quoted(_ENTRY)}) AS entry").to_arrow_table()
        (columns,) = pa.Table.from_struct_array(parsed["entry"]).combine_chunks().to_batches()
        if columns.num_rows != len(entries.hours):
            raise AssertionError(f"{len(entries.hours)} entries gave {columns.num_rows} rows")
        return self._rows(columns.columns, entries.hours)

    def _rows(self, columns: Sequence[pa.Array[Any]], hours: bytes | bytearray) -> pa.RecordBatch:
        prefix_hours = pa.Array.from_buffers(pa.int8(), len(hours), [None, pa.py_buffer(hours)])
        own = pc.subtract(columns[SCHEMA.get_field_index("timestamp")], self._start)
        in_day = pc.fill_null(pc.and_(pc.greater_equal(own, 0), pc.less(own, DAY_MS)), fill_value=False)
        own_hours = pc.divide(pc.if_else(in_day, own, 0), HOUR_MS).cast(pa.int8())
        arrays = [
            *(
                pc.fill_null(array, 0) if column.never_null else array
                for column, array in zip(COLUMNS, columns, strict=True)
            ),
            pc.if_else(in_day, own_hours, prefix_hours),
            prefix_hours,
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
