"""What the two faces over HTTP share: a server, and sessions with a connection to the warehouse."""

from __future__ import annotations

import json
import re
import ssl
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.pq import TransactionStatus

from rules.dialects.control import Control
from tests.gateway.faces.reading import Reader
from tests.gateway.faces.tries import Tries
from tests.gateway.gateway import Session, WarehouseError

if TYPE_CHECKING:
    from tests.gateway.gateway import Answer, Gateway, Statement


#: What dbt asks of the catalog before it builds: columns and rows. PostgreSQL has no such statements.
_SHOWN: Final[list[tuple[re.Pattern[str], list[str], list[list[str]]]]] = [
    (re.compile(pattern, re.IGNORECASE), columns, rows)
    for pattern, columns, rows in (
        ("SHOW TERSE SCHEMAS", ["name"], [["SALES"]]),
        (
            "SHOW OBJECTS",
            ["database_name", "schema_name", "name", "kind", "is_dynamic", "is_iceberg"],
            [],
        ),
        ("SHOW USER FUNCTIONS", ["catalog_name", "schema_name", "name", "is_builtin"], []),
        ("SHOW SCHEMAS", ["databaseName"], [["sales"]]),
        ("SHOW VIEWS", ["namespace", "viewName", "isTemporary"], []),
        (
            ".* FROM `system`.`information_schema`.`tables`",
            ["table_name", "table_type", "file_format", "table_owner", "databricks_table_type"],
            [],
        ),
    )
]


class HttpFace(ThreadingHTTPServer):
    """A server on a free port of loopback, or on ``port``."""

    daemon_threads = True
    #: Of the protocol, and what makes the answers.
    adapter: str
    handler: type[BaseHTTPRequestHandler]

    def __init__(
        self, gateway: Gateway, tenant_id: str, *, warehouse: str, tls: ssl.SSLContext, port: int = 0
    ) -> None:
        super().__init__(("127.0.0.1", port), self.handler)
        self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.gateway, self.tenant_id, self.warehouse = gateway, tenant_id, warehouse
        self.sessions: dict[str, HttpSession] = {}
        self.tries = Tries()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def server_close(self) -> None:
        for session in [*self.sessions.values()]:
            session.close()
        super().server_close()

    def sign_in(self, token: str, headers: Message, address: str) -> HttpSession | None:
        """Begin a session, or return None if the token is not valid."""
        columns: dict[str, Any] = {
            "sessionId": uuid.uuid4().hex,
            "adapterType": self.adapter,
            "clientIp": address,
            "userAgent": headers.get("User-Agent"),
            "host": headers.get("Host"),
            "operationType": "EXECUTE_STATEMENT",
        }
        session = Session(None, columns)  # type: ignore[arg-type]  # known below
        user = self.gateway.sign_in(token, self.tenant_id, session)
        if user is None:
            return None
        made = HttpSession(self, session, token, user)
        self.sessions[columns["sessionId"]] = made
        return made


@dataclass
class _Execution:
    result: bytes
    connection: psycopg.Connection[Any]
    is_own: bool

    def commit(self) -> None:
        if self.is_own:
            self.connection.execute("COMMIT")

    def roll_back(self) -> None:
        if self.is_own:
            self.connection.execute("ROLLBACK")


class HttpSession:
    """A session of a consumer, and its connection to the warehouse."""

    def __init__(self, face: HttpFace, session: Session, token: str, user: str) -> None:
        self.face, self.session, self.token, self.user = face, session, token, user
        session.warehouse = self
        self._reader = Reader(face.adapter)
        self._connection = psycopg.connect(
            face.warehouse,
            options=f"-c app.user={user}",
            autocommit=True,
            cursor_factory=psycopg.ClientCursor,
        )
        self._text: tuple[str, Any] = ("", None)

    def close(self) -> None:
        self._connection.close()
        self.face.sessions.pop(self.session.columns["sessionId"], None)

    def run(self, text: str, sent: str, parameters: Sequence[Any] | Mapping[str, Any]) -> Answer:
        """Answer a statement. ``sent`` is its text as the consumer sent it, ``text`` with psycopg's marks."""
        session = self.session
        values = [*parameters.values()] if isinstance(parameters, dict) else [*parameters]
        # Databricks quotes names as PostgreSQL does not.
        self._text = text.replace("`", '"'), parameters or None
        session.in_transaction = self._status is not TransactionStatus.IDLE
        statement = self._reader.read(sent, values)
        answer = self.face.gateway.handle(self.token, self.face.tenant_id, statement, session=session)
        if session.in_transaction and self._status is TransactionStatus.IDLE:
            session.in_transaction = False
            if statement.statement_type == "COMMIT":
                self.face.gateway.commit(self.face.tenant_id, session)
            else:
                self.face.gateway.roll_back(session)
        if statement.control is Control.SESSION:
            session.context["settings"] = [*session.context.get("settings", []), sent]
        return answer

    @property
    def _status(self) -> TransactionStatus:
        return self._connection.info.transaction_status

    def execute(self, statement: Statement) -> _Execution:
        """Run a statement. The result is JSON: the names of columns, whether each is a number, the rows."""
        kind = statement.statement_type
        if statement.control is not None and kind not in {"BEGIN", "COMMIT", "ROLLBACK"}:
            # Settings of the session are the Gateway's own.
            return _Execution(_pack([("status", False)], [["Statement executed successfully."]]), None, False)  # type: ignore[arg-type]
        for pattern, names, shown in _SHOWN:
            if pattern.match(statement.standardized_sql):
                return _Execution(_pack([(name, False) for name in names], shown), None, False)  # type: ignore[arg-type]
        is_own = statement.control is None and self._status is TransactionStatus.IDLE
        if is_own:
            self._connection.execute("BEGIN")
        try:
            cursor = self._connection.execute(*self._text)
        except psycopg.Error as error:
            if is_own:
                self._connection.execute("ROLLBACK")
            raise WarehouseError(str(error)) from None
        if cursor.description is None:
            count = max(cursor.rowcount, 0)
            packed = _pack([(f"number of rows {kind.lower()}d", True)], [[str(count)]])
        else:
            columns = [(column.name, column.type_code in {20, 21, 23}) for column in cursor.description]
            rows = [[None if value is None else str(value) for value in row] for row in cursor]
            packed = _pack(columns, rows)
        return _Execution(packed, self._connection, is_own)


def _pack(columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str | None]]) -> bytes:
    return json.dumps({"columns": columns, "rows": rows}).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers requests. A driver keeps its connection."""

    protocol_version = "HTTP/1.1"
    server: Any

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def is_refused(self, body: bytes) -> bool:
        """Answer a statement by a status of HTTP that it names, the first time."""
        status = self.server.tries.take(body)
        if status is not None:
            self.answer(int(status), b"{}", headers={"Retry-After": "1"})
        return status is not None

    def answer(
        self,
        status: int,
        body: bytes = b"",
        content_type: str = "application/json",
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name of the base class
        """Write nothing."""
