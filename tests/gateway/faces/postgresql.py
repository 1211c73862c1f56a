"""PostgreSQL's messages (protocol 3.0) in front of the reference Gateway.

Each connection has one to the warehouse. What the warehouse answers to a statement is the result: its
messages, from RowDescription to CommandComplete, byte for byte. A Bind waits until its Execute is decided.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import socketserver
import ssl
import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import psycopg

from logs.wire.messages import CANCEL_REQUEST, GSS_REQUEST, SSL_REQUEST, Message
from tests.gateway.faces.reading import Reader
from tests.gateway.faces.refusals import describe_refusal, pack_error, refuse
from tests.gateway.faces.tries import Tries
from tests.gateway.gateway import Session, WarehouseError

if TYPE_CHECKING:
    from tests.gateway.gateway import Answer, Gateway, Statement, Warehouse

#: What ends the answer to an Execute: CommandComplete, EmptyQuery, PortalSuspended, Error, CopyIn.
_ENDS: Final = {b"C", b"I", b"s", b"E", b"G"}
#: What results depend on beside the text. A Gateway asks for it when a statement may have changed it.
_CONTEXT: Final = (
    *("search_path", "role", "session_authorization", "transaction_isolation"),
    *("TimeZone", "DateStyle", "IntervalStyle", "extra_float_digits", "bytea_output", "client_encoding"),
)
#: What is asked for beside them, for the log: some drivers set it after they have connected.
_NAME: Final = "application_name"
_REPORTED: Final = (
    *("server_version", "server_encoding", "client_encoding", "DateStyle", "IntervalStyle", "TimeZone"),
    *("standard_conforming_strings", "integer_datetimes"),
)
_TEMPORARY: Final = re.compile(r"\b(TEMP|TEMPORARY)\b", re.IGNORECASE)
_SEVERAL: Final = re.compile(r";\s*\S")


class Wire:
    """Messages on a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._file = connection.makefile("rb")

    def read(self) -> Message:
        """Read a message.

        Raises:
            EOFError: the other side has closed.
        """
        kind = self._take(1)
        (length,) = struct.unpack("!i", self._take(4))
        return Message(kind, self._take(length - 4))

    def read_startup(self) -> tuple[int, bytes]:
        length, code = struct.unpack("!ii", self._take(8))
        return code, self._take(length - 8)

    def send(self, *messages: Message) -> None:
        self.socket.sendall(b"".join(message.pack() for message in messages))

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def _take(self, count: int) -> bytes:
        taken = self._file.read(count)
        if len(taken) < count:
            raise EOFError
        return taken


@dataclass
class _Portal:
    """A Bind whose Execute has not come. `text` is the statement's, `values` its parameters.

    `types` are the types of parameters as they were declared: the same text may be a number or a text.
    """

    bind: bytes
    text: str
    values: list[str | None]
    formats: tuple[int, ...]
    types: bytes = b""
    is_described: bool = False
    is_real: bool = False


@dataclass
class _Execution:
    result: bytes
    backend: _Backend

    def commit(self) -> None:
        self.backend.sync()

    def roll_back(self) -> None:
        self.backend.fail()


class _Backend:
    """A connection to the warehouse, which libpq opens, and the statement that is about to run."""

    def __init__(self, dsn: str, options: dict[str, str], client: Wire) -> None:
        flags = " ".join(f"-c {name}={_escape(value)}" for name, value in options.items())
        with psycopg.connect(dsn, options=flags, autocommit=True) as connection:
            self.parameters = {
                name: (connection.pgconn.parameter_status(name.encode()) or b"").decode()
                for name in _REPORTED
            }
            # libpq would end the session with its own socket, so another handle of it is kept.
            kept = socket.socket(fileno=os.dup(connection.pgconn.socket))
            kept.setblocking(True)
            self.wire = Wire(kept)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, connection.pgconn.socket)
            os.close(null)
        self.status = b"I"
        self.is_synced = True
        self._asks = False
        self._client = client
        self._portal = _Portal(b"", "", [], ())
        self._rows = b""

    def prepare(self, portal: _Portal, rows: bytes) -> None:
        self._portal, self._rows = portal, rows

    def execute(self, statement: Statement) -> _Execution:
        """Bind and execute the portal. The result is all that the warehouse answers."""
        portal, self.is_synced = self._portal, False
        name = portal.bind.partition(b"\0")[0] + b"\0"
        begin = [] if portal.is_real else [Message(b"B", portal.bind), Message(b"D", b"P" + name)]
        self.wire.send(*begin, Message(b"E", name + self._rows), Message(b"H"))
        result = b""
        while True:
            message = self.wire.read()
            if message.kind == b"E":
                raise WarehouseError(message.pack())
            if message.kind == b"G":
                self._copy_in(message)
                continue
            if message.kind not in {b"2", b"n"}:
                result += message.pack()
            if message.kind in _ENDS:
                return _Execution(result, self)

    def _copy_in(self, response: Message) -> None:
        self._client.send(response)
        while True:
            message = self._client.read()
            # The client syncs after the data, as the Gateway does itself.
            if message.kind in {b"d", b"c", b"f"}:
                self.wire.send(message)
            if message.kind in {b"c", b"f"}:
                self.wire.send(Message(b"H"))
                return

    def ask(self, *messages: Message) -> Iterator[Message]:
        """Send messages that have one answer, and yield it: to the end, or to an error."""
        self.is_synced = False
        self.wire.send(*messages, Message(b"H"))
        while True:
            message = self.wire.read()
            yield message
            if message.kind in {b"1", b"2", b"3", b"T", b"n", b"E"}:
                return

    def run(self, text: str) -> list[Message]:
        """Run a text by the simple protocol. Return all answers but ReadyForQuery."""
        self.wire.send(Message(b"Q", text.encode() + b"\0"))
        answers = list[Message]()
        while (message := self.wire.read()).kind != b"Z":
            answers.append(message)
        self.status, self.is_synced = message.body, True
        return answers

    def sync(self) -> None:
        """End the statement: outside a transaction of the consumer, it is committed."""
        if not self.is_synced:
            self.wire.send(Message(b"S"))
            while (message := self.wire.read()).kind != b"Z":
                pass
            self.status, self.is_synced = message.body, True

    def fail(self) -> None:
        """Roll back what was not committed. A transaction of the consumer can only be rolled back then."""
        if not self.is_synced or self.status == b"T":
            self.wire.send(Message(b"P", b"\0Gateway refuses\0\0\0"))
            self.is_synced = False
        self.sync()

    def read_context(self) -> dict[str, str]:
        """Ask for the settings, beside a statement of the consumer that is parsed and not yet executed."""
        name = b"gateway_context\0"
        columns = ", ".join(f"current_setting('{setting}')" for setting in (*_CONTEXT, _NAME))
        parse = [] if self._asks else [Message(b"P", name + f"SELECT {columns}".encode() + b"\0\0\0")]
        self._asks, self.is_synced = True, False
        self.wire.send(
            *parse,
            Message(b"C", b"P" + name),
            Message(b"B", name + name + bytes(6)),
            Message(b"E", name + bytes(4)),
            Message(b"H"),
        )
        values: list[str] = []
        while (message := self.wire.read()).kind != b"C":
            if message.kind == b"D":
                values = _read_row(message.body)
        return dict(zip((*_CONTEXT, _NAME), values, strict=True))


def _read_row(body: bytes) -> list[str]:
    values, place = [], 2
    while place < len(body):
        (length,) = struct.unpack_from("!i", body, place)
        values.append(body[place + 4 : place + 4 + length].decode())
        place += 4 + length
    return values


def _escape(value: str) -> str:
    return re.sub(r"([\\ ])", r"\\\1", value)


class PostgreSQLFace(socketserver.ThreadingTCPServer):
    """A server on a free port of loopback."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, gateway: Gateway, tenant_id: str, *, warehouse: str, tls: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.gateway, self.tenant_id, self.warehouse, self.tls = gateway, tenant_id, warehouse, tls
        self.tries = Tries()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(socketserver.BaseRequestHandler):
    server: PostgreSQLFace

    def handle(self) -> None:
        with contextlib.suppress(EOFError, ConnectionError, ssl.SSLError):
            _Connection(self.server, self.request).serve()


class _Connection:
    """One connection of a consumer."""

    def __init__(self, face: PostgreSQLFace, connection: socket.socket) -> None:
        self._face, self._gateway, self._tenant_id = face, face.gateway, face.tenant_id
        self._client = Wire(connection)
        self._reader = Reader("postgresql")
        #: By name, the text and the declared types of parameters.
        self._statements: dict[bytes, tuple[str, bytes]] = {}
        self._portals: dict[bytes, _Portal] = {}
        self._is_dirty = True
        self._skips = False
        self._token = ""
        self._opened: _Backend | None = None

    @property
    def _backend(self) -> _Backend:
        assert self._opened is not None
        return self._opened

    def serve(self) -> None:
        try:
            if self._start():
                while (message := self._client.read()).kind != b"X":
                    self._take(message)
        finally:
            if self._opened is not None:
                self._opened.wire.close()
            self._client.close()

    # --- The beginning --------------------------------------------------------------------------

    def _start(self) -> bool:
        code, body = self._client.read_startup()
        while code in {SSL_REQUEST, GSS_REQUEST}:
            self._client.socket.sendall(b"S" if code == SSL_REQUEST else b"N")
            if code == SSL_REQUEST:
                self._client = Wire(self._face.tls.wrap_socket(self._client.socket, server_side=True))
            code, body = self._client.read_startup()
        if code == CANCEL_REQUEST:
            return False
        parts = body.decode().rstrip("\0").split("\0")
        options = dict(zip(parts[::2], parts[1::2], strict=True))
        database = options.pop("database", options.pop("user"))
        # The token is the password. It comes as it is, because SCRAM needs a password that both sides know.
        self._client.send(Message(b"R", struct.pack("!i", 3)))
        self._token = self._client.read().body.rstrip(b"\0").decode()
        session_id = uuid.uuid4().hex
        self._session = Session(
            None,  # type: ignore[arg-type]  # known below
            {
                "sessionId": session_id,
                "adapterType": "postgresql",
                "clientIp": self._client.socket.getpeername()[0],
                "userAgent": options.get("application_name") or None,
                "operationType": "EXECUTE_STATEMENT",
            },
        )
        user = self._gateway.sign_in(self._token, self._tenant_id, self._session)
        if user is None:
            self._client.socket.sendall(_refuse("AUTH_ERROR", describe_refusal("AUTH_ERROR", None)))
            return False
        extra = options.pop("options", "")
        options |= dict(re.findall(r"-c\s*(\w+)=(\S+)", extra))
        # For policies of the warehouse: whom rows are for.
        self._opened = _Backend(self._face.warehouse, {**options, "app.user": user}, self._client)
        self._session.warehouse = self._backend
        self._context = {"database": database}
        self._client.send(
            Message(b"R", struct.pack("!i", 0)),
            *(
                Message(b"S", f"{name}\0{value}\0".encode())
                for name, value in self._backend.parameters.items()
            ),
            Message(b"K", struct.pack("!ii", os.getpid(), 0)),
            Message(b"Z", b"I"),
        )
        return True

    # --- Messages ------------------------------------------------------------------------------

    def _take(self, message: Message) -> None:  # noqa: C901  # a case for each message
        if message.kind == b"S":
            self._end()
        elif self._skips:
            return
        elif message.kind == b"Q":
            self._query(message.body[:-1].decode())
        elif message.kind == b"P":
            name, text, types = message.body.split(b"\0", 2)
            self._statements[name] = text.decode(), types[2:]
            if (answer := self._parse(message, text.decode())) is not None:
                self._client.send(*answer)
        elif message.kind == b"B":
            portal = self._bind(message.body)
            self._portals[message.body.partition(b"\0")[0]] = portal
        elif message.kind == b"D" and message.body[:1] == b"P" and message.body[1:-1] in self._portals:
            self._portals[message.body[1:-1]].is_described = True
        elif message.kind == b"E":
            name, rows = message.body[:-5], message.body[-4:]
            self._execute(self._portals[name], rows)
        elif message.kind == b"H":
            self._describe_waiting()
        elif message.kind in {b"D", b"C"}:
            if message.body[:1] == b"P":
                self._portals.pop(message.body[1:-1], None)
            self._pass(message)
        # CopyDone after the end of a COPY, and the like, need no answer.

    def _pass(self, message: Message) -> None:
        for answer in self._backend.ask(message):
            self._client.send(answer)
            self._skips |= answer.kind == b"E"

    def _parse(self, message: Message, text: str) -> list[Message] | None:
        """Return what the warehouse answers to a Parse. None: it failed, which is told and logged."""
        answers = [*self._backend.ask(message)]
        if answers[-1].kind != b"E":
            return answers
        self._run_instead(text, _Failed(answers[-1].pack()))
        return None

    def _describe_waiting(self) -> None:
        """Describe portals without waiting for their Execute: the client asked for the answers so far."""
        for name, portal in self._portals.items():
            if portal.is_described and not portal.is_real:
                for message in (Message(b"B", portal.bind), Message(b"D", b"P" + name + b"\0")):
                    self._pass(message)
                portal.is_real = True

    def _bind(self, body: bytes) -> _Portal:
        _, name, rest = body.split(b"\0", 2)
        formats, rest = _read_shorts(rest)
        (count,) = struct.unpack_from("!h", rest)
        rest, values = rest[2:], list[str | None]()
        for number in range(count):
            (length,) = struct.unpack_from("!i", rest)
            value, rest = rest[4 : 4 + max(length, 0)], rest[4 + max(length, 0) :]
            is_binary = (formats[number] if len(formats) > 1 else (formats or (0,))[0]) == 1
            values.append(None if length < 0 else value.hex() if is_binary else value.decode())
        wanted, _ = _read_shorts(rest)
        # A client that names no format gets text. If it names one, all columns have that.
        wanted = tuple(dict.fromkeys(wanted)) if len({*wanted}) < 2 else wanted
        text, types = self._statements[name]
        return _Portal(body, text, values, (*formats, -1, *(wanted or (0,))), types)

    def _end(self) -> None:
        """Answer a Sync."""
        if not self._skips:
            self._describe_waiting()
        self._backend.sync()
        self._skips = False
        if self._backend.status == b"I":
            self._portals.clear()
        self._client.send(Message(b"Z", self._backend.status))

    def _query(self, text: str) -> None:
        """Answer a text of the simple protocol."""
        if _SEVERAL.search(text):
            self._run_instead(text, _Several(self._backend, text))
            self._is_dirty = True
        else:
            if self._parse(Message(b"P", b"\0" + text.encode() + b"\0\0\0"), text) is not None:
                portal = _Portal(bytes(8), text, [], (-1, 0), is_described=True)
                self._execute(portal, b"\0\0\0\0", is_simple=True)
        self._end()

    def _run_instead(self, text: str, warehouse: Warehouse) -> None:
        """Let another warehouse run a statement. Its result is not to be cached."""
        session = replace(self._session, warehouse=warehouse, must_run=True)
        statement = self._reader.read(text)
        self._send_answer(self._gateway.handle(self._token, self._tenant_id, statement, session=session))

    def _execute(self, portal: _Portal, rows: bytes, *, is_simple: bool = False) -> None:
        if (code := self._face.tries.take(portal.text.encode())) is not None:
            self._backend.fail()
            fields = refuse("postgresql", "BLOCKED", "Try again.") | {"C": code}
            self._client.socket.sendall(pack_error(fields))
            self._skips = True
            return
        statement = self._reader.read(portal.text, portal.values)
        session, backend = self._session, self._backend
        if self._is_dirty and statement.control is None and backend.status != b"E":
            self._context |= backend.read_context()
            session.columns["userAgent"] = self._context.pop(_NAME) or None
            self._is_dirty = False
        is_isolated = self._context.get("transaction_isolation") != "read committed"
        limit = struct.unpack("!i", rows)[0]
        session.in_transaction = backend.status != b"I"
        # Later rows of a portal come from the warehouse, and what is not known is no key.
        is_open = session.in_transaction and (is_isolated or limit > 0)
        session.must_run = is_open or self._is_dirty or portal.is_real
        session.context = {**self._context, "format": [portal.types.hex(), *portal.formats, limit]}
        backend.prepare(portal, rows)
        answer = self._gateway.handle(self._token, self._tenant_id, statement, session=session)
        if statement.control is not None or "set_config" in portal.text:
            self._is_dirty = True
        if _TEMPORARY.search(portal.text):
            # A temporary table may have the name of another table, and is read in its place.
            self._context["temporary"] = session.columns["sessionId"]
        self._send_answer(answer, portal, is_simple=is_simple)

    def _send_answer(self, answer: Answer, portal: _Portal | None = None, *, is_simple: bool = True) -> None:
        """Send the consumer an answer. After a COMMIT, record what the transaction invalidates first."""
        session, backend = self._session, self._backend
        if answer.result is None:
            error = answer.error
            if isinstance(error, str):
                backend.fail()
                error = _refuse(answer.cache_status, error)
            self._client.socket.sendall(error)
            self._skips = True
            return
        assert isinstance(answer.result, bytes)
        messages = [*_unpack(answer.result)]
        if session.in_transaction and backend.status == b"I":
            session.in_transaction = False
            if messages[-1].body.startswith(b"COMMIT"):
                self._gateway.commit(self._tenant_id, session)
            else:
                self._gateway.roll_back(session)
        if portal is not None and not is_simple:
            has_rows = messages[0].kind == b"T"
            if not portal.is_real:
                self._client.send(Message(b"2"))
            if portal.is_described and not portal.is_real and not has_rows:
                self._client.send(Message(b"n"))
            if not portal.is_described or portal.is_real:
                messages = [message for message in messages if message.kind != b"T"]
            # Described now. libpq takes the last description for the result.
            portal.is_described = False
        self._client.send(*messages)


@dataclass
class _Failed:
    """What the warehouse refused to parse."""

    answer: bytes

    def execute(self, statement: Statement) -> _Execution:
        raise WarehouseError(self.answer)


@dataclass
class _Several:
    """Several statements in one text of the simple protocol."""

    backend: _Backend
    text: str

    def execute(self, statement: Statement) -> _Execution:
        answers = self.backend.run(self.text)
        packed = b"".join(message.pack() for message in answers)
        if any(message.kind == b"E" for message in answers):
            raise WarehouseError(packed)
        return _Execution(packed, self.backend)


def _read_shorts(body: bytes) -> tuple[tuple[int, ...], bytes]:
    (count,) = struct.unpack_from("!h", body)
    return struct.unpack_from(f"!{count}h", body, 2), body[2 + 2 * count :]


def _unpack(data: bytes) -> Iterator[Message]:
    while data:
        (length,) = struct.unpack_from("!i", data, 1)
        yield Message(data[:1], data[5 : 1 + length])
        data = data[1 + length :]


def _refuse(cache_status: str, message: str) -> bytes:
    return pack_error(refuse("postgresql", cache_status, message))
