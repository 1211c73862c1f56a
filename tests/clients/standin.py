"""A service whose SQL may write, for the tests that others wrote for drivers: these make tables.

It is DuckDB behind the client's HTTP, with the encoding of the service. Each tenant is a database.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import duckdb

from logs.sql.child import connect
from logs.sql.protocol import QueryResult, ResultColumn
from logs.sql.results import json_pieces

_TENANT = UUID(int=0)


class _Handler(BaseHTTPRequestHandler):
    server: StandIn
    protocol_version = "HTTP/1.1"
    #: Head and body are sent together, because a client waits 40 ms for a second part.
    wbufsize = -1

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/oauth/token":
            self._answer(200, b'{"access_token": "x", "expires_in": 3600}')
            return
        try:
            answer = self.server.run(json.loads(body)["sql"])
        except duckdb.Error as error:
            refused = {"error": "query_failed", "message": str(error)}
            self._answer(400, json.dumps(refused).encode())
        else:
            self._answer(200, answer)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Do nothing."""


class StandIn(ThreadingHTTPServer):
    """Runs every statement in one database, one at a time."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._connection = connect()
        self._connection.execute("CREATE SCHEMA test_schema; CREATE SEQUENCE numbers")
        self._lock = threading.Lock()

    def run(self, statement: str) -> bytes:
        """Return the rows as the service would. A statement without rows of its own has no columns."""
        with self._lock:
            result = self._connection.execute(statement)
            if result.description is None or _is_write(statement):
                return b'{"columns": [], "rows": [], "rowCount": 0, "truncated": false}'
            columns = tuple(ResultColumn(name, str(kind)) for name, kind, *_ in result.description)
            table = result.to_arrow_table()
        batches = tuple(table.to_batches()) or (table.schema.empty_table().to_batches())
        rows = QueryResult(_distinct(columns), batches, table.num_rows, truncated=False)
        return b"".join(json_pieces(rows, tenant=_TENANT))


def _is_write(statement: str) -> bool:
    return statement.split(None, 1)[0].upper() in {"CREATE", "DROP", "ALTER", "INSERT", "UPDATE", "DELETE"}


def _distinct(columns: tuple[ResultColumn, ...]) -> tuple[ResultColumn, ...]:
    """Give each column a name of its own, as the service does."""
    seen: dict[str, int] = {}
    named = []
    for column in columns:
        count = seen[column.name] = seen.get(column.name, -1) + 1
        named.append(ResultColumn(f"{column.name}_{count}" if count else column.name, column.type))
    return tuple(named)


@contextmanager
def stand_in() -> Iterator[str]:
    """Serve in this process. Yield ``host:port``."""
    with StandIn() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
