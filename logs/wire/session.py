"""One connection of a client: where each of its messages goes, and what it is answered."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from logs.held_results import NoRoom
from logs.sql.guard import MAX_STATEMENT_BYTES
from logs.wire import messages
from logs.wire.messages import MAX_PARAMETERS, Bind, Body, Message, ProtocolError, format_of
from logs.wire.rows import fields_of, pack_lines, pack_rows
from logs.wire.statements import (
    MAX_NAME,
    Action,
    Failure,
    Statement,
    Use,
    literal_of,
    null_of,
    read_filled,
    read_statement,
    read_statements,
    require,
    with_quoted_columns,
)
from tenantadmin.lib.core.errors import ApiError, RateLimited
from tenantadmin.lib.core.serving import Disconnection
from tenantadmin.lib.http.budgets import QUERY

if TYPE_CHECKING:
    import pyarrow as pa

    from logs.sql.protocol import QueryResult
    from logs.wire.access import Caller
    from logs.wire.catalog import Backend
    from logs.wire.messages import Stream

#: A client that sends nothing for so long is disconnected.
IDLE_SECONDS: Final = 1800
#: The same while the client has not read a result, which takes memory from others.
UNREAD_SECONDS: Final = 120
#: How long the catalog server is asked without a look at the client's rights and budget, and how long it may
#: work meanwhile.
_RIGHTS_SECONDS: Final = 60
_UNPAID_SECONDS: Final = 0.1
#: What a message costs beside what is measured, and each of its bytes.
_MESSAGE_SECONDS: Final = 0.0001
_BYTE_SECONDS: Final = 0.000_001
#: A caller without a budget pauses for each message so many times as long as the message costs.
_PAUSES: Final = 10
#: How long the catalog server may take to answer a message.
CATALOG_SECONDS: Final = 15
#: Characters of a statement.
_LONG: Final = 1000
#: Of one connection.
_MAX_STATEMENTS: Final = 500
_MAX_STATEMENT_BYTES: Final = 4 << 20
_MAX_PORTALS: Final = 32
logger = logging.getLogger(__name__)
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
class _Prepared:
    """A prepared statement over the log, and the types of its parameters."""

    text: str
    oids: tuple[int, ...] = ()


@dataclass(slots=True)
class _Portal:
    """A statement over the log with its values, or a cursor, and what was sent of its result."""

    action: Action
    formats: Sequence[int] = ()
    held: ExitStack = field(default_factory=ExitStack)
    result: QueryResult | None = None
    sent: int = 0
    #: When rows were made or sent, by `time.monotonic`.
    moved_at: float = 0.0

    @property
    def is_unread(self) -> bool:
        """True while it holds rows."""
        return self.result is not None and bool(self.result.batches)


class Turns:
    """For how many sessions of one caller something works at a time. The others wait."""

    def __init__(self) -> None:
        self.catalog = asyncio.Semaphore(QUERY.places)
        #: Of the threads: they share one interpreter with the loop, which waits for each of them.
        self.work = asyncio.Semaphore(1)
        #: Of pauses: a caller's sessions without a budget pause one after the other.
        self.refused = asyncio.Semaphore(1)


class Session:
    """A client that has signed in.

    Args:
        infer: returns the types of the parameters of a statement, as far as PostgreSQL knows them.
        make_room: ends a session for the memory of its results.
        turns: shared by all sessions of the caller.
    """

    def __init__(
        self,
        client: Stream,
        backend: Backend,
        caller: Caller,
        *,
        run: Callable[..., Any],
        infer: Callable[[str, Sequence[int]], Awaitable[Sequence[int]]],
        make_room: Callable[[], None],
        turns: Turns,
    ) -> None:
        self._client = client
        self._backend = backend
        self.caller = caller
        self._run = run
        self._infer = infer
        self._make_room = make_room
        self._turns = turns
        #: Over the log, by name.
        self._statements: dict[bytes, _Prepared] = {}
        self._portals: dict[bytes, _Portal] = {}
        #: What the catalog server holds, at most. Cursors are portals.
        self._catalog_statements: dict[bytes, Use] = {}
        self._catalog_portals: dict[bytes, Use] = {}
        self._savepoints = 0
        #: For the client, when the rows are sent.
        self._warnings: list[Message] = []
        self._skips = False
        self._running: Disconnection | None = None
        self._is_cancelled = False
        #: Seconds that were worked for the client since the budget was last asked, and when to ask again.
        self._unpaid = 0.0
        self._look_at = 0.0
        #: Why the budget gave nothing when it was last asked.
        self._refusal: RateLimited | None = None

    async def serve(self) -> None:
        """Answer the client until it leaves.

        Raises:
            Failure: the session ends, for this reason.
            ProtocolError, OSError, TimeoutError, asyncio.IncompleteReadError: the connection is lost.
        """
        try:
            while not self._client.is_gone() and (message := await self._read()).kind != b"X":
                await self._answer(message)
        finally:
            self._drop(*self._portals)
            try:
                # If the token has ended, what was worked is counted all the same.
                with suppress(Failure):
                    await self._pay()
            except Exception:
                logger.exception("What a session has worked could not be counted")

    @property
    def unread_bytes(self) -> int:
        """What the rows take that the client has not read."""
        return sum(portal.result.nbytes for portal in self._portals.values() if portal.result)

    @property
    def unread_since(self) -> float:
        """When the client last read of the rows that have waited longest, by `time.monotonic`."""
        moved = (portal.moved_at for portal in self._portals.values() if portal.is_unread)
        return min(moved, default=time.monotonic())

    async def _read(self) -> Message:
        is_unread = any(portal.is_unread for portal in self._portals.values())
        ends = self.unread_since + (UNREAD_SECONDS if is_unread else IDLE_SECONDS)
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + ends - time.monotonic()):
                # A read of what has arrived does not suspend. Others are served here, and the time can end.
                await asyncio.sleep(0)
                return await self._client.read()
        except TimeoutError:
            raise Failure("57P05", "The connection was idle for too long.", is_fatal=True) from None

    async def cancel(self) -> None:
        """End what runs. Further calls during the same message do nothing."""
        if self._is_cancelled:
            return
        self._is_cancelled = True
        if self._running is not None:
            self._running.set()
        elif not self._backend.is_synced:
            await self._backend.cancel()

    async def _answer(self, message: Message) -> None:
        self._is_cancelled = False
        worked = _MESSAGE_SECONDS + _BYTE_SECONDS * len(message.body)
        self._unpaid += worked
        await self._settle_up(needs_budget=False)
        if self._refusal:
            # To refuse is work too, and a Sync is never refused.
            async with self._turns.refused:
                await asyncio.sleep(_PAUSES * worked)
        if message.kind == b"S":
            self._skips = False
        elif self._skips:
            return
        try:
            await self._take(message)
        except Failure as failure:
            if failure.is_fatal:
                raise
            await self._client.send(messages.error(failure.code, failure.text, hint=failure.hint))
            self._skips = message.kind != b"Q"
        if message.kind in b"QS":
            await self._sync()

    async def _take(self, message: Message) -> None:
        match message.kind:
            case b"Q":
                await self._query(await self._read_statements(Body(message.body).text()))
            case b"P":
                await self._parse(message)
            case b"B":
                await self._bind(message)
            case b"D":
                await self._describe(message)
            case b"C":
                await self._close(message)
            case b"E":
                await self._execute(message)
            case b"S" | b"H" | b"d" | b"c" | b"f":
                # Nothing waits for a Flush, and no COPY reads from the client.
                pass
            case other:
                raise ProtocolError(f"There is no message of the kind {other!r}.")

    # The catalog server ------------------------------------------------------------------------

    async def _ask(self, message: Message) -> bool:
        """Send a message to the catalog server, and its answer to the client. Return False for an error."""
        async with self._turns.catalog:
            # A Sync is never refused: it ends what failed.
            if message.kind != b"S":
                await self._settle_up()
            return await self._pass_on(message)

    async def _pass_on(self, message: Message) -> bool:
        started = time.monotonic()
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
        finally:
            self._unpaid += time.monotonic() - started
        if not is_error and flush:
            await self._client.send(answer)
        self._skips = is_error and bool(flush)
        return not is_error

    async def _settle_up(self, *, needs_budget: bool = True) -> None:
        """Pay, if much was worked or the last look at the client's rights is old.

        The rest of an answer needs no budget.

        Raises:
            Failure: the client may not go on, or has cancelled what runs.
        """
        is_due = self._unpaid > _UNPAID_SECONDS or time.monotonic() > self._look_at
        if is_due or (needs_budget and self._refusal):
            await self._pay()
        # Also while it was paid.
        if self._is_cancelled:
            raise Failure("57014", "The statement was cancelled.")
        if needs_budget and self._refusal:
            raise failure_of(self._refusal)

    async def _work(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Work for the client in a thread, while others are served. It counts on the client's budget."""

        def work() -> Any:
            started = time.monotonic()
            try:
                return function(*arguments, **options)
            finally:
                self._unpaid += time.monotonic() - started

        async with self._turns.work:
            return await self._run(work)

    async def _pay(self) -> None:
        """Look whether the client may still ask, and count what it has asked."""
        unpaid, self._unpaid, self._refusal = self._unpaid, 0.0, None
        try:
            await self._run(self.caller.pay, unpaid)
        except RateLimited as error:
            self._refusal = error
        except ApiError as error:
            raise failure_of(error, is_fatal=True) from error
        self._look_at = time.monotonic() + _RIGHTS_SECONDS

    async def _sync(self) -> None:
        """Tell the client that a next statement may come."""
        if not self._backend.is_synced:
            await self._ask(Message(b"S"))
        self._end_transaction()
        await self._client.send(Message(b"Z", self._backend.status))

    def _end_transaction(self) -> None:
        """End what ends with a transaction, unless one lasts."""
        if self._backend.status == b"I":
            self._catalog_portals.clear()
            self._savepoints = 0
            self._drop(*(name for name, portal in self._portals.items() if not portal.action.is_held))

    # Statements --------------------------------------------------------------------------------

    async def _read_statements(self, data: bytes) -> list[Statement]:
        """Return the statements of a text. A thread reads a long one."""
        text = _decode(data)
        await self._settle_up()
        if len(text) > _LONG:
            found: list[Statement] = await self._work(read_statements, text)
            return found
        started = time.monotonic()
        try:
            return read_statements(text)
        finally:
            self._unpaid += time.monotonic() - started

    def _is_over_log(self, statement: Statement) -> bool:
        match statement.use:
            # What has no name is no cursor, and is not prepared by SQL: ALL has none.
            case Use("fetch" | "move" | "close", name):
                return name != b"" and name in self._portals
            case Use("deallocate", name):
                return name != b"" and name in self._statements
        return statement.reads_log

    async def _query(self, statements: Sequence[Statement]) -> None:
        """Run the statements of a simple query, one after the other, up to the first that fails."""
        self._drop(b"")
        if not statements:
            await self._client.send(Message(b"I"))
        for statement in statements:
            # Statements that wait for nothing may follow each other.
            await asyncio.sleep(0)
            self._unpaid += _MESSAGE_SECONDS
            if self._is_over_log(statement):
                portal = self._portals[b""] = _Portal(require(statement.action))
                try:
                    if (described := await self._describe_rows(portal)).kind == b"T":
                        await self._client.send(described)
                    await self._act(portal)
                finally:
                    self._drop(b"")
                continue
            require(statement.refusal)
            if not await self._ask_for(statement.use, Message(b"Q", statement.text.encode() + b"\0")):
                break
            self._end_transaction()

    async def _ask_for(self, use: Use, message: Message) -> bool:
        """Let the catalog server run a statement, and note what it now holds. Return False for an error."""
        self._require_room(use.verb)
        if not await self._ask(message):
            return False
        match use:
            case Use("prepare", name):
                self._catalog_statements[name] = Use(size=use.size)
            case Use("declare", name):
                self._catalog_portals[name] = Use()
            case Use("savepoint" | "release" as verb):
                self._savepoints += 1 if verb == "savepoint" else -1
            case Use("close" | "deallocate" as verb, name) if name:
                (self._catalog_portals if verb == "close" else self._catalog_statements).pop(name, None)
            case Use("close" | "deallocate" | "discard" as verb, b""):
                if verb != "deallocate":
                    self._drop(*self._portals)
                    self._catalog_portals.clear()
                if verb != "close":
                    self._statements.clear()
                    # The one without a name stays.
                    for other in filter(None, [*self._catalog_statements]):
                        del self._catalog_statements[other]
        return True

    def _require_room(self, verb: str) -> None:
        """Refuse a statement if a session holds enough of what it makes."""
        sizes = [one.size for one in self._catalog_statements.values()]
        # A number of Python has 40 bytes with its place.
        sizes += [len(one.text) + 40 * len(one.oids) for one in self._statements.values()]
        if verb == "prepare" and (len(sizes) >= _MAX_STATEMENTS or sum(sizes) > _MAX_STATEMENT_BYTES):
            raise Failure("54000", "Too many statements are prepared. Close some.")
        if verb == "declare" and len(self._catalog_portals) >= _MAX_PORTALS:
            raise Failure("54000", "Too many portals are open. Close some.")
        if verb == "savepoint" and self._savepoints >= _MAX_STATEMENTS:
            raise Failure("54000", "Too many savepoints are open. Release some.")

    async def _parse(self, message: Message) -> None:
        body = Body(message.body)
        name, statements, oids = body.text(), await self._read_statements(body.text()), body.numbers("I")
        if len(name) > MAX_NAME or len(oids) > MAX_PARAMETERS:
            raise Failure("54000", f"A name has {MAX_NAME} bytes, a statement {MAX_PARAMETERS} parameters.")
        held = {*self._statements, *self._catalog_statements}
        if name and name in held:
            raise Failure("42P05", "There is a prepared statement of this name already.")
        if name not in held:
            self._require_room("prepare")
        if len(statements) > 1:
            raise Failure("42601", "A prepared statement is one statement.")
        statement = statements[0] if statements else read_statement("")
        missing = require(statement.parameters) - len(oids)
        if not self._is_over_log(statement):
            require(statement.refusal)
            if await self._ask(message):
                self._catalog_statements[name] = statement.use
                self._statements.pop(name, None)
            return
        if missing > 0 or 0 in oids:
            query = await self._work(with_quoted_columns, require(statement.action).query)
            async with self._turns.catalog:
                started = time.monotonic()
                try:
                    oids = tuple(await self._infer(query, (*oids, *[0] * missing)))
                finally:
                    self._unpaid += time.monotonic() - started
        self._statements[name] = _Prepared(statement.text, oids)
        await self._client.send(Message(b"1"))

    async def _bind(self, message: Message) -> None:
        await self._settle_up()
        bind = Bind.read(message.body)
        if len(bind.portal) > MAX_NAME:
            raise Failure("42622", f"A name has {MAX_NAME} bytes.")
        if (statement := self._statements.get(bind.statement)) is None:
            self._drop(bind.portal)
            if bind.portal:
                self._require_room("declare")
            if await self._ask(message):
                self._catalog_portals[bind.portal] = self._catalog_statements.get(bind.statement, Use())
            return
        if len(bind.values) != len(statement.oids):
            raise Failure(
                "08P01", f"The statement has {len(statement.oids)} parameters, not {len(bind.values)}."
            )

        def make() -> _Portal:
            literals = [
                literal_of(value, oid, is_binary=format_of(bind.formats, place) == 1)
                for place, (value, oid) in enumerate(zip(bind.values, statement.oids, strict=True))
            ]
            return _Portal(require(read_filled(statement.text, literals).action), bind.result_formats)

        portal = await self._work(make)
        if not bind.portal:
            self._drop(b"")
        self._open(bind.portal, portal)
        await self._client.send(Message(b"2"))

    def _open(self, name: bytes, portal: _Portal) -> None:
        if name in self._portals:
            raise Failure("42P03", "There is a portal or a cursor of this name already.")
        # A simple query takes the one without a name.
        if len([*filter(None, self._portals)]) >= _MAX_PORTALS:
            raise Failure("54000", "Too many portals are open. Close some.")
        self._portals[name] = portal

    def _drop(self, *names: bytes) -> None:
        for name in names:
            if (portal := self._portals.pop(name, None)) is not None:
                portal.held.close()

    async def _close(self, message: Message) -> None:
        kind, name = message.body[:1], Body(message.body[1:]).text()
        if kind not in {b"P", b"S"}:
            raise ProtocolError("A portal or a statement is closed.")
        if name in (self._portals if kind == b"P" else self._statements):
            if kind == b"P":
                self._drop(name)
            else:
                del self._statements[name]
            await self._client.send(Message(b"3"))
        elif await self._ask(message):
            (self._catalog_portals if kind == b"P" else self._catalog_statements).pop(name, None)

    async def _describe(self, message: Message) -> None:
        kind, name = message.body[:1], Body(message.body[1:]).text()
        if kind == b"P" and (portal := self._portals.get(name)) is not None:
            await self._client.send(await self._describe_rows(portal))
        elif kind == b"S" and (statement := self._statements.get(name)) is not None:
            await self._settle_up()
            nulls = [null_of(oid) for oid in statement.oids]
            action = require((await self._work(read_filled, statement.text, nulls)).action)
            if action.verb == "SELECT":
                with ExitStack() as held:
                    result = await self._over_log(self.caller.describe, action.query, held)
                described = messages.row_description(fields_of(result.columns), ())
            else:
                described = await self._describe_rows(_Portal(action))
            await self._client.send(messages.parameter_description(statement.oids), described)
        else:
            await self._ask(message)

    async def _execute(self, message: Message) -> None:
        body = Body(message.body)
        name = body.text()
        if (portal := self._portals.get(name)) is not None:
            await self._act(portal, most=body.number("i"))
        else:
            await self._ask_for(self._catalog_portals.get(name, Use()), message)

    # The log -----------------------------------------------------------------------------------

    async def _fetch(self, portal: _Portal) -> QueryResult:
        """Return the result of a portal, whose statement runs if it has not."""
        if portal.result is None:
            portal.result = await self._over_log(self.caller.query, portal.action.query, portal.held)
            portal.moved_at = time.monotonic()
        return portal.result

    async def _over_log(self, ask: Callable[..., QueryResult], text: str, held: ExitStack) -> QueryResult:
        if self._backend.status == b"E":
            raise Failure("25P02", "The transaction has failed. End it by ROLLBACK.")
        await self._settle_up(needs_budget=False)
        self._running = Disconnection()
        asked = asyncio.ensure_future(self._run(ask, text, disconnection=self._running, until=held))
        try:
            result: QueryResult = await asyncio.shield(asked)
        except asyncio.CancelledError:
            # The thread may yet count its result, which is given back after that.
            self._running.set()
            await asyncio.gather(asked, return_exceptions=True)
            raise
        except ApiError as error:
            if isinstance(error, NoRoom):
                self._make_room()
            raise failure_of(error) from error
        finally:
            self._running = None
        return result

    def _cursor(self, action: Action) -> _Portal:
        if (cursor := self._portals.get(action.cursor)) is None or cursor.action.verb != "SELECT":
            raise Failure("34000", f"There is no cursor {action.cursor.decode()!r}.")
        return cursor

    async def _describe_rows(self, portal: _Portal) -> Message:
        shown = self._cursor(portal.action) if portal.action.verb == "FETCH" else portal
        if shown.action.verb != "SELECT":
            return Message(b"n")
        fields = fields_of((await self._fetch(shown)).columns)
        return messages.row_description(fields, shown.formats or portal.formats)

    async def _act(self, portal: _Portal, *, most: int = 0) -> None:
        """Do what a statement does. Of a SELECT, send at most ``most`` rows if that is not 0."""
        action = portal.action
        # The next rows are asked for, as all are not.
        await self._settle_up(needs_budget=action.verb in {"FETCH", "MOVE"} or (most > 0 and portal.sent > 0))
        match action.verb:
            case "SELECT":
                count = await self._send_rows(portal, portal.formats, most if most > 0 else None)
                if portal.is_unread:
                    await self._client.send(Message(b"s"))
                    return
                tag = f"SELECT {count}"
            case "COPY":
                tag = f"COPY {await self._copy(portal)}"
            case "DECLARE":
                await self._declare(action)
                tag = "DECLARE CURSOR"
            case "CLOSE":
                self._drop(action.cursor)
                tag = "CLOSE CURSOR"
            case "DEALLOCATE":
                self._statements.pop(action.cursor, None)
                tag = "DEALLOCATE"
            case verb:
                cursor = self._cursor(action)
                formats = None if verb == "MOVE" else cursor.formats or portal.formats
                tag = f"{verb} {await self._send_rows(cursor, formats, action.count)}"
        warnings, self._warnings = self._warnings, []
        await self._client.send(*warnings, messages.complete(tag))

    async def _declare(self, action: Action) -> None:
        if not action.is_held and self._backend.is_synced and self._backend.status == b"I":
            raise Failure("25P01", "A cursor needs a transaction (BEGIN), or WITH HOLD.")
        cursor = _Portal(replace(action, verb="SELECT"), (1,) if action.form == "binary" else ())
        self._open(action.cursor, cursor)
        try:
            await self._fetch(cursor)
        except Failure:
            self._drop(action.cursor)
            raise

    async def _send_rows(self, portal: _Portal, formats: Sequence[int] | None, most: int | None) -> int:
        """Send the next rows, or pass over them if there are no ``formats``. Return how many."""
        result, begun = await self._fetch(portal), portal.sent
        for batch in self._next(portal, result, most):
            if formats is not None:
                rows = await self._work(pack_rows, result, batch, formats, kind=b"D")
                await self._client.send_bytes(rows)
            await self._settle_up(needs_budget=False)
        return portal.sent - begun

    async def _copy(self, portal: _Portal) -> int:
        result, form = await self._fetch(portal), portal.action.form
        head, lead = _copy_head(result, portal.action)
        await self._client.send_bytes(head)
        for batch in self._next(portal, result, None):
            if form == "binary":
                data = await self._work(pack_rows, result, batch, (1,), kind=b"d")
            else:
                data = await self._work(pack_lines, result, batch, is_csv=form == "csv")
            await self._client.send_bytes(_led(data, lead))
            lead = b""
            await self._settle_up(needs_budget=False)
        trailer = [Message(b"d", lead + b"\xff\xff")] if form == "binary" else []
        await self._client.send(*trailer, Message(b"c"))
        return result.row_count

    def _next(self, portal: _Portal, result: QueryResult, most: int | None) -> Iterator[pa.RecordBatch]:
        """Yield the next rows of a portal, at most ``most``. When all are sent, none are kept."""
        end = result.row_count if most is None else min(result.row_count, portal.sent + most)
        at = 0
        for batch in result.batches:
            part = batch.slice(max(0, portal.sent - at), max(0, end - max(portal.sent, at)))
            at += batch.num_rows
            if part.num_rows:
                portal.sent += part.num_rows
                portal.moved_at = time.monotonic()
                yield part
        if portal.sent == result.row_count and result.batches:
            portal.result = replace(result, batches=())
            portal.held.close()
            if result.truncated:
                text = f"The answer was cut at {result.row_count} rows: aggregate, or read fewer days."
                self._warnings.append(messages.warning("01004", text))


def _copy_head(result: QueryResult, action: Action) -> tuple[bytes, bytes]:
    """Return CopyOutResponse, with a line of names, and what begins the first CopyData of a binary COPY."""
    count, is_binary = len(result.columns), action.form == "binary"
    formats = count.to_bytes(2, "big") + int(is_binary).to_bytes(2, "big") * count
    head = Message(b"H", bytes([is_binary]) + formats).pack()
    if is_binary:
        return head, b"PGCOPY\n\xff\r\n\0" + bytes(8)
    if action.has_header:
        names = [f'"{column.name.replace(chr(34), chr(34) * 2)}"' for column in result.columns]
        head += Message(b"d", ("," if action.form == "csv" else "\t").join(names).encode() + b"\n").pack()
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
