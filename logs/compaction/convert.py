"""Entries to columns. Contract: "Query log entry and ``proxy_logs``"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

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
    from pathlib import Path

    from logs.compaction.entries import Text

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
_COLUMNS: Final = {column.name: column.type.value for column in COLUMNS}
#: How long a value the engine makes room for, unless one is longer: little, so that it stays in the cache.
_USUAL_BYTES: Final = 1 << 18
#: Texts that become one: few, so that its memory is used again.
_WRITTEN_AT_ONCE: Final = 500


def connect() -> duckdb.DuckDBPyConnection:
    """An engine for converters: each works with a cursor of it."""
    return duckdb.connect(
        config={
            "threads": 1,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            # Files change under their names.
            "enable_external_file_cache": False,
        }
    )


class Entries(NamedTuple):
    """What is converted together.

    Attributes:
        texts: an entry each, or lines that are one each.
        hours: of the entries' prefixes, a byte for each.
        longest: no entry has more bytes.
        are_lines: that no entry has a line break within.
    """

    texts: Sequence[Text]
    hours: bytes | bytearray
    longest: int
    are_lines: bool


class Converter:
    """Makes rows (`SCHEMA`) of entries, in their order. Not to be shared between threads.

    The engine reads files only: what is converted passes through ``file``.

    Raises:
        OSError: the file could not be made.
    """

    def __init__(self, engine: duckdb.DuckDBPyConnection, *, day: date, file: Path) -> None:
        self._engine = engine.cursor()
        self._start = day_start_ms(day)
        self._file = file
        # It stays open, and what it held is written over, which takes less time than a new one each time.
        self._out = file.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()
        self._out.close()
        self._file.unlink()

    def convert(self, entries: Entries) -> pa.RecordBatch:
        """Make rows of what is known to be entries; of at least one.

        Of a field that stands twice in one the first counts. Lists and objects in columns of JSON text are
        written without spaces.

        Raises:
            OSError: the file could not be written.
        """
        self._write(entries.texts)
        options = {
            # An entry from an array may go over several lines, which the engine reads more slowly.
            "format": "nd" if entries.are_lines else "unstructured",
            "columns": _COLUMNS,
            # Of an entry, that is a second field of the same name.
            "ignore_errors": True,
            # The directory's name may be that of a day's.
            "hive_partitioning": False,
            "maximum_object_size": max(_USUAL_BYTES, entries.longest + 1),
        }
        listed = ", ".join(f"{name} = {value!r}" for name, value in options.items())
        table = self._engine.sql(f"FROM read_json({quoted(self._file)}, {listed})").to_arrow_table()
        if table.num_rows != len(entries.hours):
            raise AssertionError(f"{len(entries.hours)} entries gave {table.num_rows} rows")
        return self._rows(table.combine_chunks().to_batches()[0].columns, entries.hours)

    def _write(self, texts: Sequence[Text]) -> None:
        self._out.seek(0)
        for start in range(0, len(texts), _WRITTEN_AT_ONCE):
            some = texts[start : start + _WRITTEN_AT_ONCE]
            self._out.write(some[0] if len(some) == 1 else b"\n".join(some))
            self._out.write(b"\n")
        self._out.truncate()

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
