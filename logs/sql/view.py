"""The view ``proxy_logs`` over a tenant's files. Contract: "Query log entry and ``proxy_logs``"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from logs import columns
from logs.sql import pruning
from logs.sql.names import quote_name, quote_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES: Final = ", ".join(quote_name(column.name) for column in columns.COLUMNS)

#: The columns in the contract's order, then ``day``: text from the path, so that it decides which files
#: are opened. The guard keeps the variable out of a query's reach.
_SOURCE: Final = "read_parquet(getvariable('files'), hive_partitioning = true, hive_types = {'day': VARCHAR})"
USUAL_VIEW: Final = f"CREATE OR REPLACE VIEW proxy_logs AS SELECT {_NAMES}, day FROM {_SOURCE}"  # noqa: S608

#: The same by a schema that is given, so that a file which is older than a column has null (or 0) in it, and
#: with ``day`` computed, so that the engine takes nothing for known about it. Slower to plan.
_SCHEMA: Final = ", ".join(
    f"{quote_text(column.name)}: {{name: {quote_text(column.name)}, type: '{column.type}',"
    f" default_value: {'0' if column.never_null else 'NULL'}}}"
    for column in columns.COLUMNS
)
_CAREFUL_VIEW: Final = (
    f"CREATE OR REPLACE VIEW proxy_logs AS SELECT {_NAMES},"  # noqa: S608
    f" split_part(filename, '/', -2)[{len(columns.DAY) + 2}:] AS {columns.DAY}"
    f" FROM read_parquet(getvariable('files'), schema = MAP {{{_SCHEMA}}}, filename = true)"
)

EMPTY_VIEW: Final = (
    "CREATE OR REPLACE VIEW proxy_logs AS SELECT {columns}, NULL::VARCHAR AS day WHERE false".format(
        columns=", ".join(f"NULL::{column.type} AS {quote_name(column.name)}" for column in columns.COLUMNS)
    )
)


def _special_view(files: Sequence[str], days: Sequence[str]) -> str | None:
    """Return the statement that replaces the view for no file, or one; None for more.

    The pinned engine fails on ``min(day)`` where a partitioned view has exactly one file.
    """
    if not files:
        return EMPTY_VIEW
    if len(files) > 1:
        return None
    source = f"read_parquet({quote_text(files[0])}, hive_partitioning = false)"
    day = f"{quote_text(days[0])}::VARCHAR AS {columns.DAY}"
    # Every part is quoted, and none comes from the query.
    return f"CREATE OR REPLACE VIEW proxy_logs AS SELECT {_NAMES}, {day} FROM {source}"  # noqa: S608


def files_read(tree: dict[str, Any], files: Sequence[str], days: Sequence[str]) -> list[str]:
    """Return the files that the view must name for this statement: never exactly one of several."""
    needed = set(pruning.days_read(tree, days))
    named = [file for file, day in zip(files, days, strict=True) if day in needed]
    others = (file for file, day in zip(files, days, strict=True) if day not in needed)
    while len(named) < 2 and (other := next(others, None)):
        named.append(other)
    return named


def make_view(connection: Any, files: Sequence[str], days: Sequence[str]) -> None:
    """Let the view show ``files``, each of the day that stands at its place in ``days``."""
    if view := _special_view(files, days):
        connection.execute(view)
    else:
        name_files(connection, files)


def make_careful_view(connection: Any, files: Sequence[str]) -> None:
    """Let the view show ``files`` whatever columns each has."""
    name_files(connection, files)
    connection.execute(_CAREFUL_VIEW)


def name_files(connection: Any, files: Sequence[str]) -> None:
    """Set the variable that the usual view reads its files from."""
    # A literal: the engine would prepare and plan a parameter.
    connection.execute(f"SET VARIABLE files = string_split({quote_text(chr(10).join(files))}, chr(10))")
