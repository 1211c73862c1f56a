"""NDJSON batches to one sorted Parquet file, in DuckDB. Contract: "Query log entry and ``proxy_logs``"."""

# Statements are put together from the column table, numbers and quoted paths.
# ruff: noqa: S608

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import duckdb

from logs.columns import COLUMNS, Column
from logs.compaction.entries import MAX_ENTRY_BYTES
from logs.layout import DAY_MS, HOUR_MS, day_start_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date
    from pathlib import Path

#: A column of the file that is none of ``proxy_logs``: the hour (0 to 23) that an entry counts under.
#: That of its timestamp where it lies in the day, else that of the object's prefix.
HOUR_COLUMN: Final = "_hour"

#: zstd at its default level and 122,880 rows to a group won over larger groups and higher levels.
PARQUET_OPTIONS: Final = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3, ROW_GROUP_SIZE 122880"

_ORDINAL: Final = "_ordinal"

#: What the engine adds in front of a line: two fields with their numbers.
_LINE_MARGIN: Final = 256


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A written file: its rows, and how many entries a logId that came before had made superfluous."""

    path: Path
    rows: int
    duplicates: int


class UnreadableBatch(Exception):
    """The engine refuses a line that was checked: it has to be written anew with the known columns alone."""


def connect(
    *, spill: Path, memory_limit: str = "1GB", threads: int | None = None
) -> duckdb.DuckDBPyConnection:
    """A private in-memory engine that spills to ``spill`` and asks the network for nothing."""
    return duckdb.connect(
        config={
            "temp_directory": str(spill),
            "memory_limit": memory_limit,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            **({} if threads is None else {"threads": threads}),
        }
    )


def write_parquet(
    connection: duckdb.DuckDBPyConnection,
    batches: Sequence[Path],
    *,
    log_ids: Sequence[Path],
    day: date,
    target: Path,
) -> ParquetFile:
    """Write the entries of ``batches`` to ``target``: 51 columns and `HOUR_COLUMN`, one row per entry.

    Of entries that share a non-null ``logId`` the first stays. Rows stand in the order in which "the latest
    entry" is decided, the latest last: ``timestamp``, ``logId`` (null as 0 and ''), and on a tie the
    first by object key and position after the others.

    Raises:
        UnreadableBatch: a line has a field twice, or an unknown field the engine cannot read.
    """
    # Input order is no order here: the sort below decides.
    connection.execute("SET preserve_insertion_order = false")
    try:
        duplicates = _find_duplicates(connection, log_ids)
        rows = _write_rows(connection, batches, day=day, target=target, has_duplicates=duplicates > 0)
    except (duckdb.InvalidInputException, UnicodeDecodeError) as error:
        # The message quotes the line, and may cut it within a character.
        raise UnreadableBatch(str(error)) from error
    return ParquetFile(target, rows, duplicates)


def _find_duplicates(connection: duckdb.DuckDBPyConnection, log_ids: Sequence[Path]) -> int:
    """Make the table ``duplicate`` of the ordinals whose `logId` stands before; returns how many."""
    heads = {_ORDINAL: "BIGINT", "logId": "VARCHAR"}
    counted = connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE duplicate AS
        WITH head AS MATERIALIZED (FROM {_read_json(log_ids, heads)}),
        repeated AS (
            SELECT logId, min({_ORDINAL}) AS first FROM head GROUP BY logId HAVING count(*) > 1
        )
        SELECT {_ORDINAL} FROM head JOIN repeated USING (logId) WHERE {_ORDINAL} > first
        """
    ).fetchall()
    ((count,),) = counted
    return int(count)


def _write_rows(
    connection: duckdb.DuckDBPyConnection,
    batches: Sequence[Path],
    *,
    day: date,
    target: Path,
    has_duplicates: bool,
) -> int:
    """One pass over the wide rows; returns how many were written."""
    types = {_ORDINAL: "BIGINT", HOUR_COLUMN: "TINYINT"}
    types |= {column.name: column.type.value for column in COLUMNS}
    start = day_start_ms(day)
    written = connection.execute(
        f"""
        COPY (
            SELECT {", ".join(_select(column) for column in COLUMNS)},
                CASE WHEN timestamp BETWEEN {start} AND {start + DAY_MS - 1}
                    THEN (timestamp - {start}) // {HOUR_MS} ELSE {HOUR_COLUMN} END::TINYINT AS {HOUR_COLUMN}
            FROM {_read_json(batches, types)} AS entry
            {f"WHERE {_ORDINAL} NOT IN (FROM duplicate)" if has_duplicates else ""}
            ORDER BY coalesce(entry.timestamp, 0), coalesce(entry."logId", ''), {_ORDINAL} DESC
        ) TO {text(target)} ({PARQUET_OPTIONS})
        """
    ).fetchall()
    ((rows,),) = written
    return int(rows)


def _read_json(batches: Sequence[Path], types: Mapping[str, str]) -> str:
    return (
        f"read_json({text_list(batches)}, format = 'newline_delimited', columns = {dict(types)}, "
        f"maximum_object_size = {MAX_ENTRY_BYTES + _LINE_MARGIN})"
    )


def text(value: object) -> str:
    """A value as a SQL text literal, for places that take no parameter."""
    quoted = str(value).replace("'", "''")
    return f"'{quoted}'"


def text_list(values: Iterable[object]) -> str:
    """Values as a SQL list of text literals."""
    return f"[{', '.join(text(value) for value in values)}]"


def _select(column: Column) -> str:
    if column.never_null:
        return f'coalesce(entry."{column.name}", 0) AS "{column.name}"'
    return f'entry."{column.name}"'
