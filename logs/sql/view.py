"""The view ``proxy_logs`` over a tenant's files. Contract: "Query log entry and ``proxy_logs``"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from logs import columns
from logs.quoting import quote_name, quote_text

#: The view of the log, and the same with its times as TIMESTAMP. A query may read nothing else.
LOG_VIEW: Final = "proxy_logs"
TIME_VIEW: Final = "proxy_logs_time"
LOG_VIEWS: Final = frozenset({LOG_VIEW, TIME_VIEW})

_ASCII_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def fold(name: str) -> str:
    """Fold case as DuckDB does: ASCII letters only."""
    return name.translate(_ASCII_LOWER)


_NAMES: Final = ", ".join(quote_name(column.name) for column in columns.COLUMNS)
_NAME_LIST: Final = "(" + ", ".join(quote_text(column.name) for column in columns.COLUMNS) + ")"

#: The columns in the contract's order, then ``day``. DuckDB reads ``day`` from the paths, and so opens only
#: the files that match a condition on it. The guard does not let a query read or set the variable.
_SOURCE: Final = "read_parquet(getvariable('files'), hive_partitioning = true, hive_types = {'day': VARCHAR})"

FAST_VIEW: Final = f"CREATE OR REPLACE VIEW proxy_logs AS SELECT {_NAMES}, day FROM {_SOURCE}"  # noqa: S608
#: The columns that `TIME_VIEW` adds, and what they are made of, in epoch milliseconds.
TIMES: Final = {"time": "timestamp", "expires": "cacheExpiresAt"}
_TIMES: Final = ", ".join(f"epoch_ms({quote_name(of)}) AS {quote_name(name)}" for name, of in TIMES.items())
MAKE_TIME_VIEW: Final = f"CREATE VIEW {TIME_VIEW} AS SELECT {_NAMES}, day, {_TIMES} FROM {LOG_VIEW}"  # noqa: S608

#: The same columns with an explicit schema: a file that is older than a column has null (or 0) in it. ``day``
#: is an expression here, about which DuckDB assumes nothing. This view takes longer to plan.
_SCHEMA: Final = ", ".join(
    f"{quote_text(column.name)}: {{name: {quote_text(column.name)}, type: '{column.type}',"
    f" default_value: {'0' if column.never_null else 'NULL'}}}"
    for column in columns.COLUMNS
)


def _tolerant_view(*, more_columns: str = "", more_schema: str = "") -> str:
    return (
        f"CREATE OR REPLACE VIEW proxy_logs AS SELECT {_NAMES},"  # noqa: S608
        f" split_part(filename, '/', -2)[{len(columns.DAY) + 2}:] AS {columns.DAY}{more_columns}"
        f" FROM read_parquet(getvariable('files'), schema = MAP {{{_SCHEMA}{more_schema}}}, filename = true)"
    )


def _empty_view(*, more_columns: str = "") -> str:
    nulls = ", ".join(f"NULL::{column.type} AS {quote_name(column.name)}" for column in columns.COLUMNS)
    return (
        f"CREATE OR REPLACE VIEW proxy_logs AS SELECT {nulls}, NULL::VARCHAR AS day{more_columns} WHERE false"
    )


_TOLERANT_VIEW: Final = _tolerant_view()

EMPTY_VIEW: Final = _empty_view()

#: These also have the hour under which an entry counts and its row number in the file, which orders entries
#: at the same time. Only the service's own statements read them.
_POSITIONED_VIEW: Final = _tolerant_view(
    more_columns=", _hour, file_row_number AS _row",
    more_schema=", '_hour': {name: '_hour', type: 'TINYINT', default_value: NULL}",
)

_POSITIONED_EMPTY_VIEW: Final = _empty_view(more_columns=", NULL::TINYINT AS _hour, NULL::BIGINT AS _row")


def needed_files(needed_days: Sequence[str], files: Sequence[str], days: Sequence[str]) -> list[str]:
    """Return the files that the view must have for a statement that reads ``needed_days``."""
    read = set(needed_days)
    return [file for file, day in zip(files, days, strict=True) if day in read]


class LogView:
    """The view ``proxy_logs`` of a connection that already has the fast view.

    A query changes the view and its files only if the last one had others: that takes longer than a trivial
    statement.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._view = FAST_VIEW
        self._files: list[str] | None = None

    def make(self, files: Sequence[str]) -> None:
        """Make the fast view of ``files``."""
        if files:
            self._use(FAST_VIEW, files)
        else:
            self._replace(EMPTY_VIEW)

    def make_tolerant(self, files: Sequence[str]) -> None:
        """Make a view of ``files`` that may lack columns."""
        self._use(_TOLERANT_VIEW, files)

    def make_fitting(self, files: Sequence[str]) -> None:
        """Make the fast view, or the tolerant one if a file lacks columns. No view need be there before."""
        self._set_files(files)
        self._view = ""
        found = f"SELECT count(*) FROM parquet_schema(getvariable('files')) WHERE name IN {_NAME_LIST}"  # noqa: S608
        (count,) = self._connection.execute(found).fetchone() if files else (0,)
        if count == len(files) * len(columns.COLUMNS):
            self.make(files)
        else:
            self.make_tolerant(files)

    def make_positioned(self, files: Sequence[str]) -> None:
        """Make a view of ``files``, which may lack columns, that also has ``_hour`` and ``_row``."""
        self._use(_POSITIONED_VIEW if files else _POSITIONED_EMPTY_VIEW, files)

    def _use(self, view: str, files: Sequence[str]) -> None:
        self._set_files(files)
        self._replace(view)

    def _replace(self, view: str) -> None:
        if view != self._view:
            self._connection.execute(view)
            self._view = view

    def _set_files(self, files: Sequence[str]) -> None:
        if files != self._files:
            set_files(self._connection, files)
            self._files = list(files)


def set_files(connection: Any, files: Sequence[str]) -> None:
    """Set the variable from which the views read their files."""
    # A literal is faster than a parameter, for which DuckDB would prepare and plan the statement.
    connection.execute(f"SET VARIABLE files = string_split({quote_text(chr(10).join(files))}, chr(10))")
