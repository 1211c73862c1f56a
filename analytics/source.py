"""Opens the rollups of some days as the tables that documents are computed from."""

# Statements are put together from constants and quoted paths.
# ruff: noqa: S608

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.rollup import GROUPS, HOURS, STATEMENTS, USERS
from logs.compaction.engine import text_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from duckdb import DuckDBPyConnection

#: Of entries equal in time and logId the first by object key counts: that of the earlier day, and in one
#: day that of the higher row.
_LATEST = "row(latest_timestamp, latest_log_id, DATE '1970-01-01' - CAST(day AS DATE), latest_row)"


@dataclass(frozen=True, slots=True)
class RolledDay:
    """One day's rollups: where each table's file is opened. The path has a ``day=YYYY-MM-DD`` segment."""

    day: date
    files: Mapping[str, str]


class Rollups:
    """The rollups of some days, of a whole tenant or of one user.

    The connection has the views ``hours`` and ``users`` (with ``user_name``), ``groups`` and
    ``statements``, each with a text column ``day``. In ``groups`` the column ``latest`` orders latest
    entries across days.
    """

    def __init__(
        self, connection: DuckDBPyConnection, days: Sequence[RolledDay], *, user: str | None = None
    ) -> None:
        self._connection = connection
        connection.execute("SET VARIABLE user_name = ?", [user])
        self._open(HOURS, [day.files[HOURS] for day in days], columns="*", user=user)
        self._open(
            GROUPS,
            [day.files[GROUPS if user is None else USERS] for day in days],
            columns=f"*, {_LATEST} AS latest",
            user=user,
        )
        self._open(USERS, [day.files[USERS] for day in days], columns="*", user=user)
        self._open(STATEMENTS, [day.files[STATEMENTS] for day in days], columns="*", user=None)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The result of ``query``, each row by column name."""
        result = self._connection.execute(query)
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def row(self, query: str) -> dict[str, Any]:
        """The only row of ``query``."""
        (only,) = self.rows(query)
        return only

    def _open(self, view: str, files: list[str], *, columns: str, user: str | None) -> None:
        # A view takes no parameter, and not every user's name can be written as a literal.
        condition = "" if user is None else "WHERE user_name = getvariable('user_name')"
        self._connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT {columns} FROM read_parquet({text_list(files)}, "
            f"hive_partitioning = true, hive_types = {{'day': VARCHAR}}) {condition}"
        )
