"""Checked entries to columns, in DuckDB. Contract: "Query log entry and ``proxy_logs``"."""

# The statement is put together from the column table and numbers.
# ruff: noqa: S608

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow as pa

from logs.columns import COLUMNS, Column, SqlType
from logs.compaction.engine import HOUR_COLUMN, PREFIX_HOUR_COLUMN
from logs.layout import DAY_MS, HOUR_MS, day_start_ms

if TYPE_CHECKING:
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
_STRUCTURE: Final = json.dumps({column.name: column.type.value for column in COLUMNS})


class Converter:
    """Makes rows of entries that `logs.compaction.entries` found good. For one thread at a time."""

    def __init__(self, day: date) -> None:
        start = day_start_ms(day)
        self._connection = duckdb.connect(
            config={
                "threads": 1,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        self._statement = f"""
            SELECT {", ".join(_select(column) for column in COLUMNS)},
                CASE WHEN entry.timestamp BETWEEN {start} AND {start + DAY_MS - 1}
                    THEN (entry.timestamp - {start}) // {HOUR_MS}
                    ELSE {PREFIX_HOUR_COLUMN} END::TINYINT AS {HOUR_COLUMN},
                {PREFIX_HOUR_COLUMN}
            FROM (SELECT from_json(line, '{_STRUCTURE}') AS entry, {PREFIX_HOUR_COLUMN} FROM lines)
        """

    def convert(self, lines: pa.Table) -> pa.Table:
        """A table of `SCHEMA`, its rows in the order of ``lines``, whose columns are those of `LINES`."""
        self._connection.register("lines", lines)
        try:
            return self._connection.execute(self._statement).to_arrow_table().cast(SCHEMA)
        finally:
            self._connection.unregister("lines")

    def close(self) -> None:
        """Give back what the engine holds."""
        self._connection.close()


def _select(column: Column) -> str:
    value = f'entry."{column.name}"'
    return f'{f"coalesce({value}, 0)" if column.never_null else value} AS "{column.name}"'
