"""One connection of a client: where each of its messages goes, and what it is answered."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from logs.sql.guard import MAX_STATEMENT_BYTES
from logs.wire import messages
from logs.wire.messages import Bind, Body, Message, ProtocolError, format_of
from logs.wire.rows import fields_of, pack_lines, pack_rows
from logs.wire.statements import (
    MAX_PARAMETERS,
    Copy,
    Failure,
    count_parameters,
    fill,
    find_deallocated,
    literal_of,
    null_of,
    read_copy,
    reads_log,
    require_catalog,
    split,
    words_of,
)
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.serving import Disconnection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from logs.sql.protocol import QueryResult
    from logs.wire.access import Caller
    from logs.wire.catalog import Backend
    from logs.wire.messages import Stream

#: A client that sends nothing for so long is disconnected.
IDLE_SECONDS: Final = 1800
#: The same while the client has not read a result, which takes memory from others.
UNREAD_SECONDS: Final = 120
#: How long a client is served without a look at its rights.
_RIGHTS_SECONDS: Final = 60
#: How long the catalog server may take to answer a message.
CATALOG_SECONDS: Final = 15
#: Of one connection.
_MAX_STATEMENTS: Final = 500
_MAX_STATEMENT_BYTES: Final = 4 << 20
_MAX_PORTALS: Final = 32
#: Longer ones are cut by PostgreSQL.
_MAX_NAME: Final = 63
#: What ends the catalog server's answer to each message, beside an error.
_ENDS: Final = {
    b"P": b"1",
    b"B": b"2",
    b"C": b"3",
    b"D": b"Tn",
    b"E": b"CIs",
    b"Q": b"Z",
    b"S": b"Z",
}
#: SQLSTATEs of errors of the API, by their code.
_STATES: Final = {
    "query_rejected": "42000",
    "query_failed": "22000",
    "query_timeout": "57014",
    "query_cancelled": "57014",
    "rate_limited": "53400",
    "service_busy": "53000",
    "forbidden": "42501",
    "tos_required": "28000",
    "unauthorized": "28000",
    "invalid_token": "28000",
    "invalid_grant": "28P01",
}
_ENDING: Final = frozenset({"28000", "28P01"})


@dataclass(frozen=True, slots=True)
class _Statement:
    """A prepared statement that reads the log, and the types of its parameters."""

    text: str
    oids: tuple[int, ...] = ()


@dataclass(slots=True)
class _Portal:
    """A statement over the log with its values, and what was sent of its result."""

    text: str
    copy: Copy | None
    formats: tuple[int, ...]
    held: ExitStack = field(default_factory=ExitStack)
    result: QueryResult | None = None
    sent: int = 0


class Session:
    """A client that has signed in.

    Args:
        infer: returns the types of the parameters of a statement, as far as PostgreSQL knows them.
    """

    def __init__(
        self,
        client: Stream,
        backend: Backend,
        caller: Caller,
        *,
        run: Callable[..., Any],
        infer: Callable[[str, Sequence[int]], Sequence[int]],
    ) -> None:
        self._client = client
        self._backend = backend
        self._caller = caller
        self._run = run
        self._infer = infer
        #: By name; None stands for one of the catalog server.
        self._statements: dict[bytes, _Statement | None] = {}
        self._portals: dict[bytes, _Portal] = {}
        self._skips = False
        self._running: Disconnection | None = None
        self._looked_at = time.monotonic()

    async def serve(self) -> None:
        """Answer the client until it leaves.

        Raises:
            Failure: the session ends, for this reason.
            ProtocolError, OSError, TimeoutError, asyncio.IncompleteReadError: the connection is lost.
        """
        try:
            while (message := await self._read()).kind != b"X":
                await self._answer(message)
        finally:
            self._drop_portals()

    async def _read(self) -> Message:
        is_unread = any(portal.result and portal.result.batches for portal in self._portals.values())
        try:
            async with asyncio.timeout(UNREAD_SECONDS if is_unread else IDLE_SECONDS):
                return await self._client.read()
        except TimeoutError:
            raise Failure("57P05", "The connection was idle for too long.", is_fatal=True) from None

    def cancel(self) -> None:
        """End the query that runs, if one does. Any thread may call this."""
        if self._running is not None:
            self._running.set()

    @property
    def is_running(self) -> bool:
        return self._running is not None

    async def _answer(self, message: Message) -> None:
        if message.kind == b"S":
            self._skips = False
            await self._sync()
        elif not self._skips:
            try:
                await self._take(message)
            except Failure as failure:
                if failure.is_fatal:
                    raise
                await self._client.send(messages.error(failure.code, failure.text, hint=failure.hint))
                self._skips = message.kind != b"Q"
                if message.kind == b"Q":
                    await self._sync()

    async def _take(self, message: Message) -> None:
        match message.kind:
            case b"Q":
                await self._query(message)
            case b"P":
                await self._parse(message)
            case b"B":
                await self._bind(message)
            case b"D" | b"C":
                await self._describe_or_close(message)
            case b"E":
                await self._execute(message)
            case b"H" | b"d" | b"c" | b"f":
                # Nothing waits for a Flush, and no COPY reads from the client.
                pass
            case other:
                raise ProtocolError(f"There is no message of the kind {other!r}.")

    # The catalog server ------------------------------------------------------------------------

    async def _ask(self, message: Message) -> bool:
        """Send a message to the catalog server, and its answer to the client. Return False for an error."""
        if time.monotonic() - self._looked_at > _RIGHTS_SECONDS:
            try:
                await self._run(self._caller.require_rights)
            except ApiError as error:
                raise failure_of(error, is_fatal=True) from error
            self._looked_at = time.monotonic()
        flush = [] if message.kind in b"QS" else [Message(b"H")]
        ends, is_error = _ENDS[message.kind], False
        try:
            async with asyncio.timeout(CATALOG_SECONDS):
                await self._backend.send(message, *flush)
                while (answer := await self._backend.read()).kind not in ends:
                    await self._client.send(answer)
                    is_error = is_error or answer.kind == b"E"
                    if is_error and flush:
                        break
        except TimeoutError:
            await self._backend.cancel()
            raise Failure("57014", "The catalog server took too long.", is_fatal=True) from None
        except (asyncio.IncompleteReadError, ProtocolError) as error:
            raise Failure("57P01", "The catalog server has ended the session.", is_fatal=True) from error
        if not is_error and message.kind not in b"QS":
            await self._client.send(answer)
        self._skips = is_error and bool(flush)
        return not is_error

    async def _sync(self) -> None:
        """Tell the client that a next statement may come. Outside of a transaction all portals end."""
        if not self._backend.is_synced:
            await self._ask(Message(b"S"))
        if self._backend.status == b"I":
            self._drop_portals()
        await self._client.send(Message(b"Z", self._backend.status))

    def _drop_portals(self) -> None:
        while self._portals:
            self._portals.popitem()[1].held.close()

    # Statements --------------------------------------------------------------------------------

    async def _query(self, message: Message) -> None:
        """Run the statements of a simple query, one after the other, up to the first that fails."""
        text = _decode(Body(message.body).text())
        self._drop(b"")
        statements = split(text)
        if not any(map(reads_log, statements)):
            for statement in statements:
                require_catalog(statement)
            if len(statements) == 1 and self._forget(statements[0]):
                await self._client.send(messages.complete("DEALLOCATE"))
            else:
                await self._ask(message)
            await self._sync()
            return
        for statement in statements:
            if not reads_log(statement):
                require_catalog(statement)
                if self._forget(statement):
                    await self._client.send(messages.complete("DEALLOCATE"))
                elif not await self._ask(Message(b"Q", statement.encode() + b"\0")):
                    break
                continue
            portal = _Portal(statement, read_copy(statement), ())
            with portal.held:
                if portal.copy is None:
                    result = await self._fetch(portal)
                    await self._client.send(messages.row_description(fields_of(result.columns), ()))
                await self._send_rows(portal)
        await self._sync()

    def _forget(self, statement: str) -> bool:
        """Forget prepared statements that a statement deallocates. Return True if it is one over the log."""
        name = find_deallocated(statement)
        if name == b"" or words_of(statement)[:2] == ["discard", "all"]:
            self._statements.clear()
        elif name is not None:
            return self._statements.pop(name, None) is not None
        return False

    async def _parse(self, message: Message) -> None:
        body = Body(message.body)
        name, text, oids = body.text(), _decode(body.text()), body.numbers("I")
        if len(name) > _MAX_NAME or len(oids) > MAX_PARAMETERS:
            raise Failure("54000", f"A name has {_MAX_NAME} bytes, a statement {MAX_PARAMETERS} parameters.")
        known = sum(len(statement.text) for statement in self._statements.values() if statement)
        if len(self._statements) >= _MAX_STATEMENTS or known > _MAX_STATEMENT_BYTES:
            raise Failure("54000", "Too many statements are prepared. Close some.")
        if not reads_log(text):
            require_catalog(text)
            self._forget(text)
            if await self._ask(message):
                self._statements[name] = None
            return
        if name and name in self._statements:
            raise Failure("42P05", "There is a prepared statement of this name already.")
        statements = split(text)
        if len(statements) > 1:
            raise Failure("42601", "A prepared statement is one statement.")
        copy = read_copy(statements[0])
        missing = count_parameters(text) - len(oids)
        if missing > 0 or 0 in oids:
            inner = copy.statement if copy else statements[0]
            oids = tuple(await self._run(self._infer, inner, (*oids, *[0] * missing)))
        self._statements[name] = _Statement(statements[0], oids)
        await self._client.send(Message(b"1"))

    async def _bind(self, message: Message) -> None:
        bind = Bind.read(message.body)
        if (statement := self._statements.get(bind.statement)) is None:
            self._drop(bind.portal)
            await self._ask(message)
            return
        if len(bind.values) != len(statement.oids):
            raise Failure(
                "08P01", f"The statement has {len(statement.oids)} parameters, not {len(bind.values)}."
            )
        if len(bind.portal) > _MAX_NAME:
            raise Failure("42622", f"A name has {_MAX_NAME} bytes.")
        if bind.portal and bind.portal in self._portals:
            raise Failure("42P03", "There is a portal of this name already.")
        if len(self._portals) >= _MAX_PORTALS:
            raise Failure("54000", "Too many portals are open. Close some.")
        literals = [
            literal_of(value, oid, is_binary=format_of(bind.formats, place) == 1)
            for place, (value, oid) in enumerate(zip(bind.values, statement.oids, strict=True))
        ]
        text = fill(statement.text, literals)
        self._drop(bind.portal)
        self._portals[bind.portal] = _Portal(text, read_copy(text), bind.result_formats)
        await self._client.send(Message(b"2"))

    def _drop(self, name: bytes) -> None:
        if (portal := self._portals.pop(name, None)) is not None:
            portal.held.close()

    async def _describe_or_close(self, message: Message) -> None:
        kind, name = message.body[:1], Body(message.body[1:]).text()
        is_portal = kind == b"P"
        if message.kind == b"C":
            found = self._portals.get(name) if is_portal else self._statements.pop(name, None)
            if found is None:
                await self._ask(message)
                return
            if is_portal:
                self._drop(name)
            await self._client.send(Message(b"3"))
        elif is_portal and (portal := self._portals.get(name)) is not None:
            if portal.copy is not None:
                await self._client.send(Message(b"n"))
                return
            fields = fields_of((await self._fetch(portal)).columns)
            await self._client.send(messages.row_description(fields, portal.formats))
        elif not is_portal and (statement := self._statements.get(name)) is not None:
            await self._describe(statement)
        else:
            await self._ask(message)

    async def _describe(self, statement: _Statement) -> None:
        described = Message(b"n")
        if read_copy(statement.text) is None:
            text = fill(statement.text, [null_of(oid) for oid in statement.oids])
            with ExitStack() as held:
                result = await self._over_log(self._caller.describe, text, held)
            described = messages.row_description(fields_of(result.columns), ())
        await self._client.send(messages.parameter_description(statement.oids), described)

    async def _execute(self, message: Message) -> None:
        body = Body(message.body)
        portal = self._portals.get(body.text())
        if portal is None:
            await self._ask(message)
        else:
            await self._send_rows(portal, most=body.number("i"))

    # The log -----------------------------------------------------------------------------------

    async def _fetch(self, portal: _Portal) -> QueryResult:
        """Return the result of a portal, whose statement runs if it has not."""
        if portal.result is None:
            text = portal.copy.statement if portal.copy else portal.text
            portal.result = await self._over_log(self._caller.query, text, portal.held)
        return portal.result

    async def _over_log(self, ask: Callable[..., QueryResult], text: str, held: ExitStack) -> QueryResult:
        if self._backend.status == b"E":
            raise Failure("25P02", "The transaction has failed. End it by ROLLBACK.")
        self._running = Disconnection()
        try:
            result: QueryResult = await self._run(ask, text, disconnection=self._running, until=held)
        except ApiError as error:
            raise failure_of(error) from error
        finally:
            self._running = None
        return result

    async def _send_rows(self, portal: _Portal, *, most: int = 0) -> None:
        """Send the next rows of a portal, at most ``most`` if that is not 0, and how it ends."""
        result = await self._fetch(portal)
        begun, copy, lead = portal.sent, portal.copy, b""
        if copy is not None:
            head, lead = _copy_head(result, copy)
            await self._client.send_bytes(head)
        end = min(result.row_count, begun + most) if most > 0 and copy is None else result.row_count
        at = 0
        for batch in result.batches:
            part = batch.slice(max(0, portal.sent - at), max(0, end - max(portal.sent, at)))
            at += batch.num_rows
            if part.num_rows:
                await self._client.send_bytes(_led(_pack(result, part, portal), lead))
                lead = b""
                portal.sent += part.num_rows
                await asyncio.sleep(0)
        if portal.sent < result.row_count:
            await self._client.send(Message(b"s"))
            return
        # Its rows are not needed any more.
        portal.result = replace(result, batches=())
        portal.held.close()
        if copy is not None:
            trailer = [Message(b"d", lead + b"\xff\xff")] if copy.form == "binary" else []
            await self._client.send(*trailer, Message(b"c"))
        if result.truncated:
            text = f"The answer was cut at {result.row_count} rows: aggregate, or read fewer days."
            await self._client.send(messages.warning("01004", text))
        await self._client.send(messages.complete(f"{'COPY' if copy else 'SELECT'} {portal.sent - begun}"))


def _pack(result: QueryResult, batch: Any, portal: _Portal) -> memoryview:
    if portal.copy is None:
        binary = [format_of(portal.formats, place) == 1 for place in range(len(result.columns))]
        return pack_rows(result, batch, binary, kind=b"D")
    if portal.copy.form == "binary":
        return pack_rows(result, batch, [True] * len(result.columns), kind=b"d")
    return pack_lines(result, batch, is_csv=portal.copy.form == "csv")


def _copy_head(result: QueryResult, copy: Copy) -> tuple[bytes, bytes]:
    """Return CopyOutResponse, with a line of names, and what begins the first CopyData of a binary COPY."""
    count, is_binary = len(result.columns), copy.form == "binary"
    formats = count.to_bytes(2, "big") + int(is_binary).to_bytes(2, "big") * count
    head = Message(b"H", bytes([is_binary]) + formats).pack()
    if is_binary:
        return head, b"PGCOPY\n\xff\r\n\0" + bytes(8)
    if copy.has_header:
        names = [f'"{column.name.replace(chr(34), chr(34) * 2)}"' for column in result.columns]
        head += Message(b"d", ("," if copy.form == "csv" else "\t").join(names).encode() + b"\n").pack()
    return head, b""


def _led(data: memoryview, lead: bytes) -> bytes | memoryview:
    """Return messages whose first begins with ``lead``. ADBC reads the head of a COPY only with a row."""
    if not lead:
        return data
    size = int.from_bytes(data[1:5], "big") + len(lead)
    return b"".join((data[:1], size.to_bytes(4, "big"), lead, data[5:]))


def failure_of(error: ApiError, *, is_fatal: bool = False) -> Failure:
    """Return an error of the API as one of PostgreSQL. Without a valid token the session ends."""
    code = _STATES.get(error.code, "58000" if error.status >= 500 else "42000")
    wait = error.headers.get("Retry-After")
    hint = f"Try again in {wait} s." if wait else ""
    return Failure(code, error.text, hint=hint, is_fatal=is_fatal or code in _ENDING)


def _decode(text: bytes) -> str:
    if len(text) > MAX_STATEMENT_BYTES:
        raise Failure("54000", f"The statement is longer than {MAX_STATEMENT_BYTES} bytes. Shorten it.")
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise Failure("22021", "The statement is not UTF-8.") from error
