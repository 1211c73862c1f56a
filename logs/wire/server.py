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
import socket
import ssl
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from weakref import WeakValueDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, close_old_connections, connections

from logs.wire import messages
from logs.wire.access import Caller
from logs.wire.catalog import Backend, NotPrepared, Unavailable
from logs.wire.messages import LOST, Body, Message, ProtocolError, Stream
from logs.wire.session import Session, Turns, failure_of
from logs.wire.statements import SETTINGS, Failure
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.request_context import network_of
from tenantadmin.lib.http.budgets import REQUEST

if TYPE_CHECKING:
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
#: The same of all networks. One more ends the one that has taken longest.
STARTING: Final = 200
#: So many of one network sign in at a time. The others wait.
_SIGN_INS: Final = REQUEST.places // 2
_BACKLOG: Final = 128
#: How often is looked whether the client of a session is gone.
GONE_SECONDS: Final = 1
#: What a client may set at the start. By the one that is left out, a catalog that is lost is known.
_SETTINGS: Final = SETTINGS - {"default_transaction_read_only"}
_IGNORED: Final = frozenset({"user", "database", "client_encoding", "replication", "options"})
_MAX_PROGRAM: Final = 64
_TEXT: Final = 25
_INFER_SECONDS: Final = 5


class WireServer:
    """The server of one process.

    Args:
        prepare: makes the catalog. It is called again if the catalog server has lost it.
        tls: None serves without TLS, which is for loopback alone.
        connections: how many clients may be signed in.
        threads: how many statements and sign-ins run at a time.
    """

    def __init__(
        self,
        prepare: Callable[[], Catalog],
        *,
        tls: ssl.SSLContext | None,
        connections: int,
        threads: int,
    ) -> None:
        self._prepare = prepare
        self._catalog = prepare()
        self._preparing = asyncio.Lock()
        self._tls = tls
        self._connections = connections
        self._databases: list[BaseDatabaseWrapper] = []
        self._threads = ThreadPoolExecutor(threads, "wire", initializer=self._begin_thread)
        #: The networks of the clients that sign in, the first to come first.
        self._starting: dict[asyncio.Task[None], str] = {}
        #: By network, while one of it signs in. For more there are no places in the budget of requests.
        self._sign_ins: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        #: By the number in a CancelRequest.
        self._connected: dict[int, _Connected] = {}
        #: Of those that have signed in, also before they are connected to the catalog server.
        self._subjects: dict[asyncio.Task[None], str] = {}
        #: By subject, while it has a session.
        self._turns: WeakValueDictionary[str, Turns] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, listening: socket.socket) -> None:
        """Serve until the task is cancelled."""
        loop = asyncio.get_running_loop()
        # asyncio sets this on sockets alone that name their protocol. Without it, each answer waits 40 ms.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = await loop.create_server(lambda: _Protocol(self._accept), sock=listening, backlog=_BACKLOG)
        try:
            await loop.create_future()
        finally:
            server.close()
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

    def _accept(self, protocol: _Protocol, stream: Stream, address: str) -> None:
        """Serve a connection, unless its network has too many that sign in. If all have, end the oldest."""
        network = network_of(address)
        if list(self._starting.values()).count(network) >= STARTING_PER_NETWORK:
            stream.close()
            return
        if len(self._starting) >= STARTING:
            oldest = next(iter(self._starting))
            del self._starting[oldest]
            oldest.cancel()
        task = asyncio.create_task(self._handle(protocol, stream, address))
        self._starting[task] = network
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda ended: self._starting.pop(ended, None))

    async def _handle(self, protocol: _Protocol, stream: Stream, address: str) -> None:
        """Serve one connection to its end."""
        try:
            async with asyncio.timeout(STARTUP_SECONDS):
                started = await self._start(protocol, stream, address)
            if started is not None:
                self._starting.pop(_current_task(), None)
                await self._run_session(stream, *started)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            # The client is gone, or too slow.
            pass
        except Failure as failure:
            await stream.end(failure.code, failure.text, failure.hint)
        except ProtocolError as error:
            await stream.end("08P01", str(error))
        except Exception:
            logger.exception("A connection failed")
            await stream.end("XX000", "The service failed to answer.")
        finally:
            self._subjects.pop(_current_task(), None)
            stream.close()

    # The beginning -----------------------------------------------------------------------------

    async def _start(
        self, protocol: _Protocol, stream: Stream, address: str
    ) -> tuple[Backend, Caller, list[Message]] | None:
        """Return a session's connection to the catalog server, caller and welcome; None if it is done."""
        code, body, is_safe = await self._negotiate(protocol, stream)
        if code == messages.CANCEL_REQUEST:
            await self._cancel(body)
            return None
        if not is_safe:
            raise Failure("28000", "TLS is needed here: sslmode=verify-full.")
        return await self._sign_in(stream, code, body, address)

    async def _negotiate(self, protocol: _Protocol, stream: Stream) -> tuple[int, bytes, bool]:
        """Return the first message that asks for no encryption, and whether the connection is safe.

        What a client, or someone between, sends in plain text behind the request for TLS is not read.
        """
        read = 0
        asked: set[int] = set()
        while (found := await stream.read_startup())[0] in {messages.SSL_REQUEST, messages.GSS_REQUEST}:
            code, body = found
            if code in asked:
                raise ProtocolError("Encryption was asked for twice.")
            asked.add(code)
            read += 8 + len(body)
            if code == messages.SSL_REQUEST and self._tls is not None:
                if protocol.received > read:
                    raise ProtocolError("Plain text follows the request for TLS.")
                await stream.start_tls(self._tls)
                return *await stream.read_startup(), True
            await stream.send_bytes(b"N")
        return *found, self._tls is None

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
        try:
            async with self._sign_ins.setdefault(network_of(address), asyncio.Semaphore(_SIGN_INS)):
                caller = await self._run(
                    partial(Caller.sign_in, password, database=database, address=address, program=program)
                )
        except ApiError as error:
            raise failure_of(error, is_fatal=True) from None
        self._take_place(caller.claims.subject)
        try:
            backend = await self._connect({**settings, "client_encoding": "UTF8"})
        except Unavailable as error:
            logger.warning("The catalog server cannot be reached: %r", error)
            raise Failure(
                "57P03", "The catalog server is away. Try again in a moment.", is_fatal=True
            ) from None
        welcome = [Message(b"R", struct.pack("!i", 0))]
        welcome += [messages.parameter_status(name, value) for name, value in backend.parameters.items()]
        return backend, caller, welcome

    def _take_place(self, subject: str) -> None:
        """Count a connection of a caller, until it ends.

        Raises:
            Failure: there are too many.
        """
        if len(self._subjects) >= self._connections:
            raise Failure("53300", "Too many clients are connected. Try again later.", is_fatal=True)
        if list(self._subjects.values()).count(subject) >= max(1, self._connections // _SHARE):
            raise Failure("53300", "You have too many connections. Close some.", is_fatal=True)
        self._subjects[_current_task()] = subject

    async def _connect(self, settings: Mapping[str, str]) -> Backend:
        """Connect to the catalog server. If it is another one than before, or restored, make the catalog."""
        with contextlib.suppress(NotPrepared):
            return await Backend.connect(self._catalog, settings)
        async with self._preparing:
            try:
                # Another client may have had it made.
                return await Backend.connect(self._catalog, settings)
            except NotPrepared as error:
                logger.warning("The catalog is made again: %r", error)
            try:
                self._catalog = await asyncio.to_thread(self._prepare)
            except psycopg.Error as error:
                raise Unavailable(str(error)) from error
        return await Backend.connect(self._catalog, settings)

    async def _run_session(
        self, stream: Stream, backend: Backend, caller: Caller, welcome: list[Message]
    ) -> None:
        number, secret = secrets.randbits(31), secrets.token_bytes(4)
        turns = self._turns.setdefault(caller.claims.subject, Turns())
        session = Session(
            stream,
            backend,
            caller,
            run=self._run,
            infer=self._infer,
            make_room=self._make_room,
            turns=turns,
        )
        watching = asyncio.create_task(_cancel_when_gone(stream, session))
        self._connected[number] = _Connected(session, secret, stream, _current_task())
        try:
            key = Message(b"K", struct.pack("!i", number) + secret)
            await stream.send(*welcome, key, Message(b"Z", b"I"))
            await session.serve()
        finally:
            del self._connected[number]
            watching.cancel()
            await _end(backend)

    async def _infer(self, statement: str, oids: Sequence[int]) -> Sequence[int]:
        """Return the types of a statement's parameters, as PostgreSQL sees them, or text."""
        text, found = statement.encode(), tuple[int, ...]()
        with contextlib.suppress(*LOST, Unavailable):
            async with asyncio.timeout(_INFER_SECONDS):
                backend = await self._connect({"client_encoding": "UTF8"})
                try:
                    parse = b"\0" + text + struct.pack(f"!xH{len(oids)}I", len(oids), *oids)
                    await backend.send(Message(b"P", parse), Message(b"D", b"S\0"), Message(b"S"))
                    while (message := await backend.read()).kind != b"Z":
                        if message.kind == b"t":
                            found = Body(message.body).numbers("I")
                finally:
                    await _end(backend)
        return found if len(found) == len(oids) else [oid or _TEXT for oid in oids]

    async def _cancel(self, body: bytes) -> None:
        """End what the session with this key runs. A wrong key is not answered either."""
        connected = self._connected.get(int.from_bytes(body[:4], "big"))
        if connected is not None and hmac.compare_digest(connected.secret, body[4:]):
            await connected.session.cancel()

    def _make_room(self) -> None:
        """End the session that has read nothing for the longest time, of the caller with most unread rows."""
        connected = [one for one in self._connected.values() if not one.task.cancelling()]
        holding = [one for one in connected if one.session.unread_bytes]
        unread = Counter[str]()
        for one in holding:
            unread[one.subject] += one.session.unread_bytes
        if holding:
            ((most, size),) = unread.most_common(1)
            slow = min(
                (one for one in holding if one.subject == most), key=lambda one: one.session.unread_since
            )
            logger.warning("Ending a session of a caller who has left %s bytes of rows unread", size)
            slow.end("53200", "Rows that you have not read took memory that others need.")

    async def _run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a function that uses the database in a thread."""

        def call() -> Any:
            close_old_connections()
            try:
                return function(*arguments, **options)
            finally:
                close_old_connections()

        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


class _Connected(NamedTuple):
    """A session, what a CancelRequest has to name, and where it is served."""

    session: Session
    secret: bytes
    stream: Stream
    task: asyncio.Task[None]

    @property
    def subject(self) -> str:
        return self.session.caller.claims.subject

    def end(self, code: str, text: str) -> None:
        """End the session. A client that reads nothing is not told why."""
        self.stream.tell(messages.error(code, text, severity="FATAL"))
        self.task.cancel()


class _Protocol(asyncio.StreamReaderProtocol):
    """Counts what is received."""

    def __init__(self, accept: Callable[[_Protocol, Stream, str], None]) -> None:
        self.received = 0
        super().__init__(asyncio.StreamReader(), self._begin)
        self._accept = accept

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername") or [""]
        self._accept(self, Stream(reader, writer), str(peer[0]))

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        super().data_received(data)


def _current_task() -> asyncio.Task[None]:
    return cast("asyncio.Task[None]", asyncio.current_task())


async def _end(backend: Backend) -> None:
    """Close a connection to the catalog server, and end what runs there."""
    try:
        if not backend.is_synced:
            await backend.cancel()
    finally:
        backend.close()


async def _cancel_when_gone(stream: Stream, session: Session) -> None:
    while not stream.is_gone():
        await asyncio.sleep(GONE_SECONDS)
    await session.cancel()


def _settings_of(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a startup message, ``options`` (``-c name=value``) included.

    Raises:
        Failure: one cannot be set.
    """
    settings = {name.lower(): value for name, value in parameters.items() if name.lower() not in _IGNORED}
    for word in parameters.get("options", "").replace("-c ", "--").split():
        name, _, value = word.removeprefix("--").removeprefix("-c").partition("=")
        settings[name.lower()] = value
    if unknown := [name for name in settings if name not in _SETTINGS and not name.startswith("_pq_.")]:
        raise Failure("42501", f"Here {unknown[0]!r} cannot be set at the start.", is_fatal=True)
    if parameters.get("client_encoding", "UTF8").strip("'").lower() not in {"utf8", "utf-8", "unicode"}:
        raise Failure("0A000", "The only encoding here is UTF8.", is_fatal=True)
    if parameters.get("replication", "false") not in {"false", "off", "no", "0"}:
        raise Failure("0A000", "There is no replication here.", is_fatal=True)
    return {name: value for name, value in settings.items() if name in _SETTINGS}
