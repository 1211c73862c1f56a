"""The database backend. Django imports this module by its name."""

from __future__ import annotations

import datetime as dt
import select
from typing import TYPE_CHECKING, Any

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import BaseTzLoader
from psycopg.adapt import Transformer

if TYPE_CHECKING:
    from psycopg.abc import Buffer
    from psycopg.abc import Transformer as AnyTransformer


class UtcLoader(BaseTzLoader):  # type: ignore[misc] # without types
    """A loader of ``timestamptz`` values in UTC, ten times as fast as Django's, which reads all others."""

    timezone = dt.UTC

    def load(self, data: Buffer) -> dt.datetime:
        text = bytes(data)
        if text.endswith(b"+00"):
            try:
                return dt.datetime.fromisoformat(text.decode())
            except ValueError:
                pass  # For a year of five digits, psycopg raises an error with an explanation.
        moment: dt.datetime = super().load(data)
        return moment


class DatabaseWrapper(base.DatabaseWrapper):
    """A PostgreSQL connection whose health check first looks at the socket.

    Django's check sends ``SELECT 1`` before the first query of every request, which doubles the cost of a
    light request. The socket of an idle connection has nothing to read. If the server has closed the
    connection, the socket is readable; then Django's check decides.
    """

    #: The server's name of each ``PreparedQuery`` that this connection has prepared.
    statements: dict[object, bytes]
    #: Reads the rows of prepared queries.
    transformer: AnyTransformer

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        if self.timezone is dt.UTC:
            connection.adapters.register_loader("timestamptz", UtcLoader)
        self.statements = {}
        self.transformer = Transformer(connection)
        return connection

    def is_usable(self) -> bool:
        if self.connection is None:
            return False
        try:
            poll = select.poll()
            poll.register(self.connection.fileno(), select.POLLIN | select.POLLPRI)
            is_idle = not poll.poll(0)
        except (psycopg.Error, OSError, ValueError):
            return False
        return is_idle or super().is_usable()
