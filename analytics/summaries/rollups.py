"""Query the merged rollups of a period. Documents of a day use `day_tables` instead."""

# Queries consist of constants and quoted paths.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.summaries.rollup_schema import ACTIVITY, HOURS, REQUEST_SUM, RULES, STATEMENTS, USERS
from logs.quoting import quote_text, quote_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duckdb import DuckDBPyConnection

#: The main rule of each statement: it gave most of the hits, or without hits decided most of the requests.
#: It is null if no rule decided most of them; a rule also decided what it blocked. The rule of the latest
#: request may have given none of the hits.
MAIN_RULES: Final = f"""(
    SELECT statement, arg_max_null(rule, row(hits, requests, coalesce(rule, ''))) AS main_rule FROM (
        SELECT statement, rule, sum(hits) AS hits, sum(requests) AS requests FROM (
            SELECT statement, rule, hits, entries AS requests FROM <rules>
            UNION ALL SELECT statement, NULL, hits, {REQUEST_SUM} FROM <statements>
            UNION ALL SELECT statement, NULL, -hits, -hits - misses FROM <rules>
        ) GROUP BY ALL
    ) GROUP BY statement
)"""  # only constants
_IS_USER = "WHERE user_name = getvariable('user_name')"


class Rollups:
    """The merged rollups of a period, for a whole tenant or for one user.

    Queries name these tables in angle brackets. Only the files of the named tables are opened.

    - ``<statements>``: one row per statement, with ``hour_mask`` and ``is_kept``;
    - ``<rules>``: rule x statement, of a tenant;
    - ``<hours>``: hour x user;
    - ``<activity>``: one row per day;
    - ``<user_activity>``: user x day;
    - ``<user_statements>``: user x statement.

    Args:
        parts: the addresses of the tables' files: of one month or year, or of all years for the history.
        user: read only the rows of this user.
    """

    def __init__(
        self, connection: DuckDBPyConnection, parts: Sequence[Mapping[str, str]], *, user: str | None = None
    ) -> None:
        self._connection = connection
        is_tenant = user is None
        if not is_tenant:
            # A variable, because a name with NUL cannot be a literal.
            connection.execute("SET VARIABLE user_name = ?", [user])
        condition = "" if is_tenant else _IS_USER
        tables = {
            "<statements>": (STATEMENTS if is_tenant else USERS, condition),
            "<rules>": (RULES, ""),
            "<hours>": (HOURS, condition),
            "<activity>": (ACTIVITY, "WHERE user_name IS NULL" if is_tenant else _IS_USER),
            "<user_activity>": (ACTIVITY, "WHERE user_name IS NOT NULL" if is_tenant else _IS_USER),
            "<user_statements>": (USERS, condition),
        }
        self._tables = {
            name: f"(SELECT * FROM {_read_parquet(part[table] for part in parts)} {condition})"
            for name, (table, condition) in tables.items()
        }
        self.is_tenant = is_tenant
        self.parts = len(parts)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of ``query``, each as a dict by column name."""
        result = self._execute(query)
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def row(self, query: str) -> dict[str, Any]:
        """Return the only row of ``query``."""
        (row,) = self.rows(query)
        return row

    def statement_texts(self, files: Iterable[str], statements: Sequence[str]) -> dict[str, str]:
        """Return the texts of ``statements`` (MD5, lower-case hex), by MD5.

        Args:
            files: statement tables of days. Texts that are in none of them are left out.
        """
        if not statements:
            return {}
        uuids = ", ".join(f"{quote_text(statement)}::UUID" for statement in statements)
        result = self._connection.execute(
            f"SELECT replace(statement::VARCHAR, '-', ''), sql FROM {_read_parquet(files)} "
            f"WHERE statement IN ({uuids})"
        )
        return dict(result.fetchall())

    def _execute(self, query: str) -> DuckDBPyConnection:
        for name, table in self._tables.items():
            query = query.replace(name, table)
        return self._connection.execute(query)


def _read_parquet(files: Iterable[str]) -> str:
    return f"read_parquet({quote_texts(files)}, hive_partitioning = false)"
