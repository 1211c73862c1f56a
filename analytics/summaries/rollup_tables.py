"""What the rollups of a day, a month and a year hold, and how they are written. Contract: "Summary records".

Five tables, all exact; no summary reads raw rows again. Days merge into months and months into years
(`analytics.summaries.merge`), which have the same tables with fewer columns:

- ``statements``: one row per statement, in the order of the daily document, with its text;
- ``users``: user x statement, by user, each one's in the order of the user's daily document;
- ``rules``: rule x statement;
- ``hours``: hour x user, with additive sums;
- ``activity``: user x day, and for the tenant as a whole (``user_name`` null) the day.

A statement is its MD5 as a UUID, which engines compare as one number. A 24-bit ``hour_mask`` says in which
hours a group occurred, which keeps distinct counts per hour exact. ``latest_*`` are those of the group's
latest entry; ``latest_timestamp``, ``latest_log_id``, ``latest_day`` and, within a day, ``latest_row``
decide which it is (`LATEST_ORDER`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.summaries.grouping import WIDE
from tenantadmin.arrow import pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from analytics.summaries.grouping import Array

#: Raise it when the rollups' columns or meaning change: every day's are made anew.
ROLLUP_VERSION: Final = 3
#: The first version whose day files hold everything that rollups of the present one are made of.
FIRST_LOG_VERSION: Final = 2
#: Stands for rollups that were lost: they cannot be read, and are made anew from the day's file.
NO_VERSION: Final = 0

STATEMENTS: Final = "statements"
USERS: Final = "users"
RULES: Final = "rules"
HOURS: Final = "hours"
ACTIVITY: Final = "activity"
TABLES: Final = (STATEMENTS, USERS, RULES, HOURS, ACTIVITY)

#: Orders latest entries. Of those equal in time and logId the first by object key counts: that of the earlier
#: day, and in one day that of the higher row.
LATEST_ORDER: Final = "row(latest_timestamp, latest_log_id, DATE '1970-01-01' - latest_day, latest_row)"

#: What a record shows of its latest entry, and which entry that is.
SHOWN: Final = ("latest_cache_key", "latest_rule", "latest_status", "latest_code", "latest_size")
_LATEST: Final = ("latest_row", "latest_timestamp", "latest_log_id", "latest_day")
_ASKED_COLUMNS: Final = (
    *("entries", "hits", "misses", "bypasses", "passthroughs", "time_mean", "warehouse_sum"),
    *("first_timestamp", "last_timestamp", "hour_mask", "is_kept"),
)
#: The columns of each table of a day, in order.
COLUMNS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    STATEMENTS: ("sql", "statement", *_ASKED_COLUMNS, "uncached_warehouse_sum", *_LATEST, *SHOWN),
    USERS: ("user_name", "statement", *_ASKED_COLUMNS, *SHOWN),
    RULES: (
        *("rule", "statement", "hits", "misses", "miss_warehouse_sum", "miss_warehouse_count"),
        *(*_LATEST, "latest_rule_name"),
    ),
    HOURS: (
        *("hour", "user_name", "entries", "hits", "misses", "hit_bytes", "other_bytes"),
        *("time_sum", "time_count", "time_min", "time_max"),
        *("hit_time_sum", "hit_time_count", "miss_time_sum", "miss_time_count"),
    ),
    ACTIVITY: (
        *("user_name", "day", "users", "queries", "hits", "total", "hit_bytes"),
        *("time_sum", "time_count", "time_min", "time_max", "stored_elements", "stored_size"),
    ),
}
#: The type of each column that is no 64-bit number.
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

#: Rows to a row group: few where one user's are wanted, so that they are found without reading many others'.
_FEW: Final = 2048
_GROUP_ROWS: Final = {STATEMENTS: 8192, HOURS: 512}
#: Bytes of statements to a row group, or one statement: a reader holds a row group.
GROUP_BYTES: Final = 4 << 20
#: Columns that do not become smaller, and those whose values repeat.
_RANDOM: Final = frozenset({"statement", "latest_cache_key", "latest_log_id"})
_REPEATING: Final = frozenset({"user_name", "rule", "latest_rule", "latest_rule_name", "latest_status"})


def write_table(table: pa.Table, path: Path) -> None:
    """Write the columns of the table that ``path`` is named after."""
    columns = COLUMNS_OF[path.stem]
    schema = pa.schema([(name, TYPES.get(name, pa.int64())) for name in columns])
    options: dict[str, Any] = {
        "compression": {name: "NONE" if name in _RANDOM else "LZ4" for name in columns},
        "use_dictionary": [name for name in columns if name in _REPEATING],
    }
    rows = _GROUP_ROWS.get(path.stem, _FEW)
    with pq.ParquetWriter(path, schema, **options) as writer:
        for part in _parts(table):
            typed = {field.name: _typed(part[field.name], field.type) for field in schema}
            writer.write_table(pa.table(typed), row_group_size=rows)


def _parts(table: pa.Table) -> Iterator[pa.Table]:
    """The rows in parts, of whole row groups each: of statements some MiB, however long they are."""
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


def _typed(column: Array, kind: Any) -> Array:
    array = column.combine_chunks()
    return pa.ExtensionArray.from_storage(kind, array) if kind == pa.uuid() else array.cast(kind)
