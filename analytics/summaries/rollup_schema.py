"""The tables and columns of rollups, and the writer of a day's tables. Contract: "Summary records".

A rollup has five tables with exact numbers. Summaries are computed from them, not from raw rows. The rollups
of days merge into months and years (`analytics.summaries.merge`): the same tables with fewer columns.

- ``statements``: one row per statement with its text, in the order of the daily document;
- ``users``: user x statement, sorted by user; within a user in the order of the user's daily document;
- ``rules``: rule x statement;
- ``hours``: hour x user;
- ``activity``: user x day, and a row for the whole tenant (``user_name`` null) per day.

A statement is represented by its MD5 as a UUID, which DuckDB compares as one number. ``hour_mask`` has a bit
for each of the 24 hours in which a group has entries, so that distinct counts per hour are exact. ``is_kept``
means that the statement was stored in the cache or served from it. ``latest_*`` are columns of the latest
entry of a group. `LATEST_ORDER` of ``latest_timestamp``, ``latest_log_id`` and ``latest_day`` decides which
entry is the latest, and within a day ``latest_row``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.summaries.grouping import WIDE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from analytics.summaries.grouping import Array

#: Raise it when columns or their meaning change. Then the rollups of all days are built again.
ROLLUP_VERSION: Final = 5
#: The first version whose day files have everything that current rollups need.
FIRST_LOG_VERSION: Final = 2
#: The first version whose months and years have all columns that documents of one user read.
FIRST_MERGED_VERSION: Final = 3
#: Marks a day whose rollup files are lost. They are built again from the day's file.
NO_VERSION: Final = 0

STATEMENTS: Final = "statements"
USERS: Final = "users"
RULES: Final = "rules"
HOURS: Final = "hours"
ACTIVITY: Final = "activity"
TABLES: Final = (STATEMENTS, USERS, RULES, HOURS, ACTIVITY)

#: The latest entry has the highest value. If time and logId are equal, the first entry by object key is the
#: latest: the entry of the earlier day, or within a day the higher row.
LATEST_ORDER: Final = "row(latest_timestamp, latest_log_id, DATE '1970-01-01' - latest_day, latest_row)"

#: Columns of the latest entry that a statement record shows.
LATEST_VALUES: Final = ("latest_cache_key", "latest_rule", "latest_status", "latest_code", "latest_size")
#: Columns that identify the latest entry.
_LATEST_KEY: Final = ("latest_row", "latest_timestamp", "latest_log_id", "latest_day")
_STATEMENT_COLUMNS: Final = (
    "entries", "hits", "misses", "bypasses", "passthroughs", "time_mean", "warehouse_sum",
    "first_timestamp", "last_timestamp", "hour_mask", "is_kept",
)  # fmt: skip
#: The columns of each table of a day, in order. ``misses`` counts MISS in statements and users, which have
#: columns for BYPASS and PASSTHROUGH. In rules and hours it counts all three; ``not_cached`` of rules has the
#: latter two.
COLUMNS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    STATEMENTS: (
        "sql", "statement", *_STATEMENT_COLUMNS, "uncached_warehouse_sum",
        *_LATEST_KEY, *LATEST_VALUES,
    ),
    USERS: ("user_name", "statement", *_STATEMENT_COLUMNS, *LATEST_VALUES),
    RULES: (
        "rule", "statement", "entries", "hits", "misses", "not_cached",
        "miss_warehouse_sum", "miss_warehouse_count", *_LATEST_KEY, "latest_rule_name",
    ),
    HOURS: (
        "hour", "user_name", "entries", "hits", "misses", "hit_bytes", "other_bytes",
        "time_sum", "time_count", "time_min", "time_max",
        "hit_time_sum", "hit_time_count", "miss_time_sum", "miss_time_count",
    ),
    ACTIVITY: (
        "user_name", "day", "users", "queries", "hits", "total", "hit_bytes",
        "time_sum", "time_count", "time_min", "time_max", "stored_elements", "stored_size",
    ),
}  # fmt: skip
#: SQL over rows of statements: the requests that were not cached, and all requests.
NOT_CACHED_SUM: Final = "bypasses + passthroughs"
REQUEST_SUM: Final = f"hits + misses + {NOT_CACHED_SUM}"
#: The types of columns. All others are 64-bit integers.
TYPES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("sql", "user_name", "rule", "latest_log_id", "latest_rule_name"), pa.string()),
    **dict.fromkeys(("latest_cache_key", "latest_rule", "latest_status"), pa.string()),
    **dict.fromkeys(("hit_bytes", "other_bytes", "time_sum", "hit_time_sum", "miss_time_sum"), WIDE),
    **dict.fromkeys(("day", "latest_day"), pa.date32()),
    "statement": pa.uuid(),
    "stored_size": WIDE,
    "is_kept": pa.bool_(),
    "hour": pa.int8(),
    "hour_mask": pa.int32(),
    "latest_code": pa.int32(),
}

#: Maximum rows of a row group. Small row groups let a reader of one user skip most other rows.
_DEFAULT_GROUP_ROWS: Final = 2048
_GROUP_ROWS: Final = {STATEMENTS: 8192, HOURS: 512}
#: Maximum bytes of statements in a row group, or one longer statement. Readers hold a row group in memory.
GROUP_BYTES: Final = 4 << 20
#: Columns that do not compress. Below, columns whose values repeat.
_INCOMPRESSIBLE: Final = frozenset({"statement", "latest_cache_key", "latest_log_id"})
_REPEATING: Final = frozenset({"user_name", "rule", "latest_rule", "latest_rule_name", "latest_status"})


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table of a day's rollups. The file name is the table name."""
    columns = COLUMNS_OF[path.stem]
    schema = pa.schema([(name, TYPES.get(name, pa.int64())) for name in columns])
    options: dict[str, Any] = {
        "compression": {name: "NONE" if name in _INCOMPRESSIBLE else "LZ4" for name in columns},
        "use_dictionary": [name for name in columns if name in _REPEATING],
    }
    rows = _GROUP_ROWS.get(path.stem, _DEFAULT_GROUP_ROWS)
    with pq.ParquetWriter(path, schema, **options) as writer:
        for part in _parts(table):
            columns_of_part = {field.name: _cast(part[field.name], field.type) for field in schema}
            writer.write_table(pa.table(columns_of_part), row_group_size=rows)


def _parts(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows. A part of the statement table is one row group, limited by `GROUP_BYTES`."""
    if "sql" not in table.column_names:
        yield table
        return
    texts: Array = table["sql"].combine_chunks()
    lengths = pc.binary_length(texts.dictionary).take(texts.indices).to_pylist()
    start = size = 0
    for row, length in enumerate(lengths):
        if row > start and (size + length > GROUP_BYTES or row - start == _GROUP_ROWS[STATEMENTS]):
            yield table.slice(start, row - start)
            start, size = row, 0
        size += length
    yield table.slice(start)


def _cast(column: Array, type_: Any) -> Array:
    array = column.combine_chunks()
    return pa.ExtensionArray.from_storage(type_, array) if type_ == pa.uuid() else array.cast(type_)
