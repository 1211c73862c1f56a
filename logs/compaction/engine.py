"""DuckDB connections, and the internal columns of a day's Parquet file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import duckdb

if TYPE_CHECKING:
    from pathlib import Path

#: The hour (0 to 23) under which an entry counts: the hour of its timestamp if that is in the day, else the
#: hour of the object's prefix. The column is in the file but not in ``proxy_logs``.
HOUR_COLUMN: Final = "_hour"

#: The hour (0 to 23) of the object's prefix. A rebuild uses it to find the rows that it can reuse.
PREFIX_HOUR_COLUMN: Final = "_prefix_hour"

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
