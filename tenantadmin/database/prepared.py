"""Queries that the Gateway and the dashboard ask all the time, with as little as possible around them.

psycopg's cursor and Django's around it cost several times what PostgreSQL takes for a row found by its key
(``docs/performance.md``). `PreparedQuery` hands the prepared statement to libpq itself.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, cast

from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import pq

if TYPE_CHECKING:
    from tenantadmin.database.base import DatabaseWrapper

_numbers: Final = itertools.count(1)


class PreparedQuery:
    """A query for at most one row: SQL with ``%s`` for each parameter, and no other per cent sign.

    Inside a transaction, where somebody looks on (``connection.execute_wrappers``, a logging cursor) and
    after any failure it goes through Django's cursor, which then raises what Django raises.
    """

    def __init__(self, sql: str) -> None:
        self._sql = sql
        first, *others = sql.split("%s")
        numbered = [f"${number}{text}" for number, text in enumerate(others, start=1)]
        self._numbered = "".join([first, *numbered]).encode()

    def fetch_one(self, *parameters: object) -> tuple[Any, ...] | None:
        """Return the row, or None where there is none.

        Raises:
            django.db.Error: as Django's cursor does.
        """
        wrapper = cast("DatabaseWrapper", connections[DEFAULT_DB_ALIAS])
        if not (wrapper.in_atomic_block or wrapper.execute_wrappers or wrapper.queries_logged):
            wrapper.close_if_health_check_failed()
            wrapper.ensure_connection()
            values = [str(value).encode() for value in parameters]
            result = self._execute(wrapper, values)
            if result is not None:
                wrapper.transformer.set_pgresult(result)
                return wrapper.transformer.load_row(0, tuple) if result.ntuples else None
        with wrapper.cursor() as cursor:
            cursor.execute(self._sql, [str(value) for value in parameters])
            row: tuple[Any, ...] | None = cursor.fetchone()
            return row

    def _execute(self, wrapper: DatabaseWrapper, values: list[bytes]) -> pq.abc.PGresult | None:
        """Return the result, None where there is no good one."""
        server = wrapper.connection.pgconn
        if server.transaction_status != pq.TransactionStatus.IDLE:
            return None
        if any(b"\0" in value for value in values):
            return None  # for libpq the value would end there
        name = wrapper.statements.get(self)
        if name is None:
            # A new name each time: a statement that failed may still be known by its old one.
            name = f"tenantadmin_{next(_numbers)}".encode()
            if server.prepare(name, self._numbered).status != pq.ExecStatus.COMMAND_OK:
                return None
            wrapper.statements[self] = name
        result: pq.abc.PGresult = server.exec_prepared(name, values)
        if result.status != pq.ExecStatus.TUPLES_OK:
            del wrapper.statements[self]
            return None
        return result
