"""The engine over day files and what is made of them, and what those files hold beside the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: A column of the file that is none of ``proxy_logs``: the hour (0 to 23) that an entry counts under.
#: That of its timestamp where it lies in the day, else that of the object's prefix.
HOUR_COLUMN: Final = "_hour"

#: Another: the hour (0 to 23) of the object's prefix, by which a rebuild finds the rows it may keep.
PREFIX_HOUR_COLUMN: Final = "_prefix_hour"

#: Rows to a row group of a day's file: won over larger groups.
ROW_GROUP_ROWS: Final = 122_880


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


def text(value: object) -> str:
    """A value as a SQL text literal, for places that take no parameter."""
    quoted = str(value).replace("'", "''")
    return f"'{quoted}'"


def text_list(values: Iterable[object]) -> str:
    """Values as a SQL list of text literals."""
    return f"[{', '.join(text(value) for value in values)}]"
