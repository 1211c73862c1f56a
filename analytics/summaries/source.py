"""Opens merged rollups as the tables that documents are computed from. A day's: `daytables`."""

# Statements are put together from constants and quoted paths.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.summaries.rollup_tables import ACTIVITY, HOURS, RULES, STATEMENTS, USERS
from logs.compaction.engine import sql_text, sql_text_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duckdb import DuckDBPyConnection

_OWN = "WHERE user_name = getvariable('user_name')"


class Rollups:
    """The merged rollups of a period, of a whole tenant or of one user.

    Queries name tables in angle brackets, so that only those they name are opened:

    - ``<statements>``: one row per statement, with ``hour_mask`` and ``is_kept``;
    - ``<rules>``: rule x statement, of a tenant;
    - ``<hours>``: hour x user;
    - ``<activity>``: the days, one row each;
    - ``<people>``: the same by user;
    - ``<asked>``: user x statement.

    Args:
        parts: where the file of each table is opened: one month or year; for the history all years.
        user: rows of that user alone.
    """

    def __init__(
        self, connection: DuckDBPyConnection, parts: Sequence[Mapping[str, str]], *, user: str | None = None
    ) -> None:
        self._connection = connection
        is_tenant = user is None
        if not is_tenant:
            # Not every user's name can be written as a literal.
            connection.execute("SET VARIABLE user_name = ?", [user])
        own = "" if is_tenant else _OWN
        people = "WHERE user_name IS NOT NULL" if is_tenant else _OWN
        chosen = {
            "<statements>": (STATEMENTS if is_tenant else USERS, own),
            "<rules>": (RULES, ""),
            "<hours>": (HOURS, own),
            "<activity>": (ACTIVITY, "WHERE user_name IS NULL" if is_tenant else _OWN),
            "<people>": (ACTIVITY, people),
            "<asked>": (USERS, own),
        }
        self._tables = {
            name: f"(SELECT * FROM {_read(part[table] for part in parts)} {condition})"
            for name, (table, condition) in chosen.items()
        }
        self.is_tenant = is_tenant

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The result of ``query``, each row by column name."""
        result = self._execute(query)
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def row(self, query: str) -> dict[str, Any]:
        """The only row of ``query``."""
        (only,) = self.rows(query)
        return only

    def texts(self, files: Iterable[str], statements: Sequence[str]) -> dict[str, str]:
        """The texts of ``statements`` (MD5, lower-case hex) that stand in ``files``, tables of days."""
        if not statements:
            return {}
        wanted = ", ".join(f"{sql_text(statement)}::UUID" for statement in statements)
        result = self._connection.execute(
            f"SELECT replace(statement::VARCHAR, '-', ''), sql FROM {_read(files)} "
            f"WHERE statement IN ({wanted})"
        )
        return dict(result.fetchall())

    def _execute(self, query: str) -> DuckDBPyConnection:
        for name, table in self._tables.items():
            query = query.replace(name, table)
        return self._connection.execute(query)


def _read(files: Iterable[str]) -> str:
    return f"read_parquet({sql_text_list(files)}, hive_partitioning = false)"
