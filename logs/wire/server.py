"""Accept connections, up to the session of a client that has signed in.

A client controls nothing without a bound: how many connections one network and all may open, how long a
startup takes, and how large it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import secrets
import struct
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import psycopg
from django.db import DEFAULT_DB_ALIAS, close_old_connections, connections

from logs.wire import messages
from logs.wire.access import Caller
from logs.wire.catalog import Backend, Unavailable
from logs.wire.messages import Body, Message, ProtocolError, Stream
from logs.wire.session import Session, failure_of
from logs.wire.statements import Failure, with_quoted_columns
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.hosts import network_of

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    from logs.wire.catalog import Catalog

logger = logging.getLogger(__name__)

_MAX_PASSWORD: Final = 1000
#: One caller may have a part of all connections.
_SHARE: Final = 5
#: A client signs in within this time.
STARTUP_SECONDS: Final = 15
#: So many connections of one network may be signing in.
STARTING_PER_NETWORK: Final = 20
_BACKLOG: Final = 128
#: What a client may set at the start; others are refused, as by SET.
_SETTINGS: Final = frozenset(
    {"application_name", "datestyle", "timezone", "extra_float_digits", "intervalstyle", "search_path"}
)
_IGNORED: Final = frozenset({"user", "database", "client_encoding", "replication", "options"})
_MAX_PROGRAM: Final = 64
_TEXT: Final = 25
_CONNECT_SECONDS: Final = 5


@dataclass(slots=True)
class _Connected:
    """A session that a CancelRequest with its key may reach."""

    secret: bytes
    caller: Caller
    backend: Backend
    session: Session


class WireServer:
    """The server of one process.

    Args:
        tls: None serves without TLS, which is for loopback alone.
        connections: how many clients may be signed in.
        threads: how many statements and sign-ins run at a time.
    """

    def __init__(
        self, catalog: Catalog, *, tls: ssl.SSLContext | None, connections: int, threads: int
    ) -> None:
        self._catalog = catalog
        self._tls = tls
        self._connections = connections
        self._databases: list[BaseDatabaseWrapper] = []
        self._threads = ThreadPoolExecutor(threads, "wire", initializer=self._begin_thread)
        self._starting: Counter[str] = Counter()
        self._connected: dict[int, _Connected] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, listening: socket.socket) -> None:
        """Serve until the task is cancelled."""
        listening.listen(_BACKLOG)
        listening.setblocking(False)  # noqa: FBT003  # it takes no keyword
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, peer = await loop.sock_accept(listening)
                except OSError as error:
                    # Such as too many open files.
                    logger.warning("A connection cannot be accepted: %s", error)
                    await asyncio.sleep(0.1)
                    continue
                task = loop.create_task(self._handle(connection, str(peer[0])))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.to_thread(self._end_threads)

    def _end_threads(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        for database in self._databases:
            database.close()

    def _begin_thread(self) -> None:
        """Keep the connection to the database of a thread, to close it when all end."""
        database = connections[DEFAULT_DB_ALIAS]
        database.inc_thread_sharing()
        self._databases.append(database)

    async def _handle(self, connection: socket.socket, address: str) -> None:
        """Serve one connection to its end."""
        network, closing = network_of(address), contextlib.ExitStack()
        closing.callback(connection.close)
        if self._starting[network] >= STARTING_PER_NETWORK:
            closing.close()
            return
        try:
            with self._starting_up(network) as started:
                async with asyncio.timeout(STARTUP_SECONDS) as startup:
                    code, body, tls = await self._negotiate(connection)
                    stream, gone = await _open(connection, tls)
                    closing.callback(stream.close)
                    if tls is not None:
                        code, body = await stream.read_startup()

                    def begin() -> None:
                        started()
                        startup.reschedule(None)

                    await self._speak(
                        stream, gone, code, body, address=address, is_safe=tls is self._tls, begin=begin
                    )
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ProtocolError):
            # The client is gone, too slow, or speaks something else.
            pass
        finally:
            closing.close()

    async def _speak(
        self,
        stream: Stream,
        gone: asyncio.Event,
        code: int,
        body: bytes,
        *,
        address: str,
        is_safe: bool,
        begin: Callable[[], None],
    ) -> None:
        """Answer a startup message, and serve the session, which ``begin`` marks."""
        try:
            if code == messages.CANCEL_REQUEST:
                await self._cancel(body)
                return
            if not is_safe:
                raise Failure("28000", "TLS is needed here: sslmode=verify-full.")  # noqa: TRY301
            backend, caller, welcome = await self._sign_in(stream, code, body, address)
            begin()
            await self._run_session(stream, backend, caller, gone, welcome)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            raise
        except Failure as raised:
            failure = raised
        except ProtocolError as error:
            failure = Failure("08P01", str(error))
        except Exception:
            logger.exception("A connection failed")
            failure = Failure("XX000", "The service failed to answer.")
        else:
            return
        await stream.send(messages.error(failure.code, failure.text, severity="FATAL", hint=failure.hint))
        await stream.finish()

    @contextlib.contextmanager
    def _starting_up(self, network: str) -> Iterator[Callable[[], None]]:
        """Count a connection that is signing in, until the block ends or the function is called."""
        with contextlib.ExitStack() as counted:
            self._starting[network] += 1
            counted.callback(self._starting.subtract, [network])
            yield counted.close

    # The beginning -----------------------------------------------------------------------------

    async def _negotiate(self, connection: socket.socket) -> tuple[int, bytes, ssl.SSLContext | None]:
        """Return the first message that asks for no encryption, or how to encrypt before it is read.

        Exactly one message is read before TLS begins: what a client, or someone between, sends in plain text
        behind it counts as a part of the handshake, and fails.
        """
        loop = asyncio.get_running_loop()
        connection.setblocking(False)  # noqa: FBT003  # it takes no keyword
        while True:
            code, rest = messages.read_code(await _receive(connection, 8))
            body = await _receive(connection, rest)
            if code == messages.SSL_REQUEST and self._tls is not None:
                await loop.sock_sendall(connection, b"S")
                return code, body, self._tls
            if code not in {messages.SSL_REQUEST, messages.GSS_REQUEST}:
                return code, body, None
            await loop.sock_sendall(connection, b"N")

    async def _sign_in(
        self, stream: Stream, code: int, body: bytes, address: str
    ) -> tuple[Backend, Caller, list[Message]]:
        """Return a connection to the catalog server, the caller, and how the client is welcomed."""
        if code >> 16 != messages.PROTOCOL >> 16:
            raise ProtocolError("Only the protocol 3.0 is spoken here.")
        if code != messages.PROTOCOL:
            # NegotiateProtocolVersion: 3.0, without the names of options.
            await stream.send(Message(b"v", struct.pack("!ii", messages.PROTOCOL, 0)))
        parameters = messages.read_parameters(body)
        settings = _settings_of(parameters)
        database = parameters.get("database") or parameters.get("user", "")
        program = "".join(filter(str.isprintable, settings.get("application_name", "")))[:_MAX_PROGRAM]
        # SCRAM needs a password that both sides know. Here only a digest of it is stored.
        await stream.send(Message(b"R", struct.pack("!i", 3)))
        answer = await stream.read(longest=_MAX_PASSWORD)
        if answer.kind != b"p":
            raise ProtocolError("A password is expected.")
        password = Body(answer.body).text().decode(errors="replace")
        if len(self._connected) >= self._connections:
            raise Failure("53300", "Too many clients are connected. Try again later.", is_fatal=True)
        try:
            caller = await self._run(
                partial(Caller.sign_in, password, database=database, address=address, program=program)
            )
        except ApiError as error:
            raise failure_of(error, is_fatal=True) from None
        own = sum(one.caller.claims.subject == caller.claims.subject for one in self._connected.values())
        if own >= max(1, self._connections // _SHARE):
            raise Failure("53300", "You have too many connections. Close some.", is_fatal=True)
        try:
            backend = await Backend.connect(self._catalog, {**settings, "client_encoding": "UTF8"})
        except Unavailable as error:
            logger.warning("The catalog server cannot be reached: %s", error)
            raise Failure(
                "57P03", "The catalog server is away. Try again in a moment.", is_fatal=True
            ) from None
        welcome = [Message(b"R", struct.pack("!i", 0))]
        welcome += [messages.parameter_status(name, value) for name, value in backend.parameters.items()]
        return backend, caller, welcome

    async def _run_session(
        self, stream: Stream, backend: Backend, caller: Caller, gone: asyncio.Event, welcome: list[Message]
    ) -> None:
        number, secret = secrets.randbits(31), secrets.token_bytes(4)
        session = Session(stream, backend, caller, run=self._run, infer=partial(infer_types, self._catalog))
        watching = asyncio.create_task(_cancel_when(gone, session))
        self._connected[number] = _Connected(secret, caller, backend, session)
        try:
            key = Message(b"K", struct.pack("!i", number) + secret)
            await stream.send(*welcome, key, Message(b"Z", b"I"))
            await session.serve()
        finally:
            del self._connected[number]
            watching.cancel()
            if not backend.is_synced:
                # It would run on.
                await backend.cancel()
            backend.close()

    async def _cancel(self, body: bytes) -> None:
        """End what the session with this key runs. A wrong key is not answered either."""
        number, secret = body[:4], body[4:]
        found = self._connected.get(int.from_bytes(number, "big"))
        if found is None or not hmac.compare_digest(found.secret, secret):
            return
        if found.session.is_running:
            found.session.cancel()
        else:
            await found.backend.cancel()

    async def _run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a function that uses the database in a thread."""

        def call() -> Any:
            close_old_connections()
            try:
                return function(*arguments, **options)
            finally:
                close_old_connections()

        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


async def _open(connection: socket.socket, tls: ssl.SSLContext | None) -> tuple[Stream, asyncio.Event]:
    """Return the stream of a connection, and what is set when the client is gone."""
    loop, gone, reader = asyncio.get_running_loop(), asyncio.Event(), asyncio.StreamReader()
    protocol = _Protocol(reader, gone)
    transport, _ = await loop.connect_accepted_socket(
        lambda: protocol, connection, ssl=tls, ssl_handshake_timeout=STARTUP_SECONDS if tls else None
    )
    return Stream(reader, asyncio.StreamWriter(transport, protocol, reader, loop)), gone


class _Protocol(asyncio.StreamReaderProtocol):
    """Sets an event when the client closes the connection, also while nothing reads from it."""

    def __init__(self, reader: asyncio.StreamReader, gone: asyncio.Event) -> None:
        super().__init__(reader)
        self._gone = gone

    def eof_received(self) -> bool:
        self._gone.set()
        super().eof_received()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._gone.set()
        super().connection_lost(error)


async def _cancel_when(gone: asyncio.Event, session: Session) -> None:
    await gone.wait()
    session.cancel()


async def _receive(connection: socket.socket, count: int) -> bytes:
    """Receive exactly ``count`` bytes.

    Raises:
        ConnectionResetError: the client has closed the connection.
    """
    data = b""
    while len(data) < count:
        piece = await asyncio.get_running_loop().sock_recv(connection, count - len(data))
        if not piece:
            raise ConnectionResetError
        data += piece
    return data


def _settings_of(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a startup message, ``options`` (``-c name=value``) included.

    Raises:
        Failure: one cannot be set.
    """
    settings = {name.lower(): value for name, value in parameters.items() if name.lower() not in _IGNORED}
    words = parameters.get("options", "").replace("-c ", "--").replace("-c", "--").split()
    for word in words:
        name, _, value = word.removeprefix("--").partition("=")
        settings[name.lower()] = value
    if unknown := [name for name in settings if name not in _SETTINGS and not name.startswith("_pq_.")]:
        raise Failure("42501", f"Here {unknown[0]!r} cannot be set at the start.", is_fatal=True)
    if parameters.get("client_encoding", "UTF8").strip("'").lower() not in {"utf8", "utf-8", "unicode"}:
        raise Failure("0A000", "The only encoding here is UTF8.", is_fatal=True)
    if parameters.get("replication", "false") not in {"false", "off", "no", "0"}:
        raise Failure("0A000", "There is no replication here.", is_fatal=True)
    return {name: value for name, value in settings.items() if name in _SETTINGS}


def infer_types(catalog: Catalog, statement: str, oids: Sequence[int]) -> Sequence[int]:
    """Return the types of a statement's parameters, as PostgreSQL sees them; text if it cannot read it."""
    types = [oid or _TEXT for oid in oids]
    with (
        contextlib.suppress(psycopg.Error),
        psycopg.connect(catalog.conninfo, autocommit=True, connect_timeout=_CONNECT_SECONDS) as connection,
    ):
        server = connection.pgconn
        prepared = server.prepare(b"", with_quoted_columns(statement).encode(), oids)
        described = server.describe_prepared(b"")
        if not prepared.error_message and described.nparams == len(oids):
            types = [oid or described.param_type(place) for place, oid in enumerate(oids)]
    return types
