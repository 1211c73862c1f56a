"""Prepared queries for the requests that Gateways and dashboards send all the time.

psycopg's cursor and Django's cursor around it take several times as long as PostgreSQL takes to find a row by
its key (decision 12). `PreparedQuery` passes the prepared statement to libpq directly.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, cast

from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import pq
from psycopg.errors import error_from_result

if TYPE_CHECKING:
    from tenantadmin.lib.database.base import DatabaseWrapper

_numbers: Final = itertools.count(1)
#: SQLSTATE of a statement that ran into `statement_timeout`.
_TIMED_OUT: Final = b"57014"


class PreparedQuery:
    """A query for at most one row. In the SQL, ``%s`` is a parameter; there is no other percent sign.

    Parameters are sent as text, or as NULL if they are None.

    It falls back to Django's cursor inside a transaction, while queries are logged or wrapped
    (``connection.execute_wrappers``), and after any failure but a timeout, so that the caller gets Django's
    exceptions.
    """

    def __init__(self, sql: str) -> None:
        self._sql = sql
        first, *others = sql.split("%s")
        numbered = [f"${number}{text}" for number, text in enumerate(others, start=1)]
        self._numbered = "".join([first, *numbered]).encode()

    def fetch_one(self, *parameters: object) -> tuple[Any, ...] | None:
        """Return the row, or None if there is none.

        Raises:
            django.db.Error: the errors of Django's cursor.
        """
        texts = [None if value is None else str(value) for value in parameters]
        wrapper = cast("DatabaseWrapper", connections[DEFAULT_DB_ALIAS])
        if not (wrapper.in_atomic_block or wrapper.execute_wrappers or wrapper.queries_logged):
            wrapper.close_if_health_check_failed()
            wrapper.ensure_connection()
            result = self._execute(wrapper, texts)
            if result is not None:
                wrapper.transformer.set_pgresult(result)
                return wrapper.transformer.load_row(0, tuple) if result.ntuples else None
        with wrapper.cursor() as cursor:
            cursor.execute(self._sql, texts)
            row: tuple[Any, ...] | None = cursor.fetchone()
            return row

    def _execute(self, wrapper: DatabaseWrapper, texts: list[str | None]) -> pq.abc.PGresult | None:
        """Return the result, or None if the query failed or cannot be sent this way.

        Raises:
            django.db.OperationalError: the query took longer than ``statement_timeout``.
        """
        server = wrapper.connection.pgconn
        if server.transaction_status != pq.TransactionStatus.IDLE:
            return None
        values = [None if text is None else text.encode() for text in texts]
        if any(b"\0" in value for value in values if value):
            return None  # libpq would cut the value at the NUL
        name = wrapper.statements.get(self)
        if name is None:
            # Always use a new name: after a failure, the server may still have a statement of the old name.
            name = f"tenantadmin_{next(_numbers)}".encode()
            if server.prepare(name, self._numbered).status != pq.ExecStatus.COMMAND_OK:
                return None
            wrapper.statements[self] = name
        result: pq.abc.PGresult = server.exec_prepared(name, values)
        if result.status != pq.ExecStatus.TUPLES_OK:
            del wrapper.statements[self]
            if result.error_field(pq.DiagnosticField.SQLSTATE) == _TIMED_OUT:
                # To ask again would take as long again.
                with wrapper.wrap_database_errors:
                    raise error_from_result(result)
            return None
        return result
