"""The engine on this machine: a guarded, locked process per query. Implements `protocol.Engine`.

Nothing of the user's text is parsed here, and what comes back is bounded and validated before use.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import select
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from logs.sql import guard, wire
from logs.sql.errors import EngineUnavailable, QueryFailed, QueryRejected, QueryTimeout
from logs.sql.fairness import FairGate, GateAbandoned, GateFull, GateTimeout
from logs.sql.lanes import Lanes
from logs.sql.layout import as_integers, no_rows, with_plain_booleans
from logs.sql.messages import with_place
from logs.sql.pool import PoolBroken, ProcessPool, QueryProcess
from logs.sql.protocol import Limits, LogSource, QueryResult, ResultColumn
from logs.sql.yielding import Yielding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from logs.sql.options import SqlOptions

logger = logging.getLogger(__name__)

#: The Arrow stream may exceed the byte cap by its own framing, and so large may the frame's head be.
_FRAMING_BYTES: Final = 8 << 20

#: A quoted name in an engine type.
_QUOTED: Final = re.compile(r'"((?:[^"]|"")*)"')

#: Characters of a name that a message shows.
_SHOWN_NAME: Final = 60


class LocalEngine:
    """Runs queries in processes of its own, ``slots`` at once and ``per_tenant`` of one tenant.

    ``queue`` more may wait, half of them of one tenant. ``warm`` processes are kept ready for the ``usual``
    limits.
    """

    def __init__(self, *, slots: int, per_tenant: int, queue: int, warm: int, usual: Limits) -> None:
        self._gate = FairGate(slots=slots, per_tenant=per_tenant, queue=queue)
        # With more of them than there are processors for, each would take as much longer.
        self._lanes = Lanes(width=max(1, (os.cpu_count() or 1) // usual.threads))
        self._usual = usual
        self._pool = ProcessPool(warm=warm, preparation=self._preparation(usual))

    @classmethod
    def from_options(cls, options: SqlOptions) -> LocalEngine:
        """Return an engine as the operator set it."""
        return cls(
            slots=options.slots,
            per_tenant=options.slots_per_tenant,
            queue=options.queue,
            warm=options.warm,
            usual=options.limits,
        )

    def execute(
        self,
        *,
        source: LogSource,
        statement: str,
        limits: Limits,
        abandonment: Abandonment | None = None,
    ) -> QueryResult:
        """See `protocol.Engine.execute`. The time limit covers waiting for a slot.

        Raises `QueryAbandoned` once nobody waits for the result any more.
        """
        started = time.monotonic()
        deadline = started + limits.seconds
        try:
            guard.check_text(statement)
        except guard.Refused as refusal:
            raise QueryRejected(with_place(refusal.message, statement, refusal.position)) from None
        is_abandoned = abandonment.is_declared if abandonment else None
        exchange = functools.partial(_Exchange, deadline=deadline, limits=limits, abandonment=abandonment)
        try:
            with self._gate.enter(source.tenant_id, deadline=deadline, is_abandoned=is_abandoned):
                preparation = self._preparation(limits)
                try:
                    process = self._pool.take(preparation=preparation)
                    document, body = self._run(process, source, statement, exchange)
                except _LostUnheard:
                    # Killed from outside while it waited, or by the text itself: the second try tells.
                    process = self._pool.take(preparation=preparation, fresh=True)
                    document, body = self._run(process, source, statement, exchange)
        except _LostUnheard:
            raise _crashed(limits) from None
        except GateTimeout:
            raise QueryTimeout(
                f"No query could start within {limits.seconds:g} seconds: too many are running. Try again."
            ) from None
        except GateAbandoned:
            raise QueryAbandoned from None
        except GateFull:
            raise QueryTimeout("Too many queries are waiting for their turn already. Try again.") from None
        except PoolBroken as broken:
            logger.exception("No query process")
            raise EngineUnavailable from broken
        elapsed_ms = round((time.monotonic() - started) * 1000)
        return _result(document, body, statement=statement, limits=limits, elapsed_ms=elapsed_ms)

    def _run(
        self,
        process: QueryProcess,
        source: LogSource,
        statement: str,
        exchange: Callable[[QueryProcess, Yielding], _Exchange],
    ) -> tuple[dict[str, Any], bytearray]:
        yielding = Yielding(process, tenant=source.tenant_id, threads=self._usual.threads, lanes=self._lanes)
        try:
            return exchange(process, yielding).run(source, statement)
        finally:
            yielding.end()
            process.end()
            self._pool.refill()

    def _preparation(self, limits: Limits) -> wire.Preparation:
        return wire.Preparation(
            # Of processor time; the deadline itself comes with the query.
            seconds=max(limits.seconds, self._usual.seconds),
            memory_bytes=limits.memory_bytes,
            threads=limits.threads,
        )

    @property
    def running(self) -> int:
        """How many queries run now."""
        return self._gate.inside

    def close(self) -> None:
        """End every process of this engine."""
        self._pool.close()


class QueryAbandoned(Exception):
    """Nobody waits for the result any more; the query was ended."""


class Abandonment:
    """Tells an engine, from another thread, that nobody waits for a query any more."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0, os.EFD_CLOEXEC)
        self._declared = threading.Event()
        # Not before the last thread that may wait for it has let go.
        weakref.finalize(self, os.close, self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def declare(self) -> None:
        """End the query that was given this. Without effect on one that is over."""
        self._declared.set()
        os.eventfd_write(self._descriptor, 1)

    def is_declared(self) -> bool:
        return self._declared.is_set()


class _LostUnheard(Exception):
    """The process ended before it had read the statement."""


class _Exchange:
    """One conversation with one query process."""

    def __init__(
        self,
        process: QueryProcess,
        yielding: Yielding,
        *,
        deadline: float,
        limits: Limits,
        abandonment: Abandonment | None,
    ) -> None:
        self._process = process
        self._yielding = yielding
        self._deadline = deadline
        self._limits = limits
        self._abandonment = abandonment
        self._poll = select.poll()
        self._poll.register(process.channel, select.POLLIN)
        if abandonment:
            self._poll.register(abandonment, select.POLLIN)
        self._checked: dict[str, Any] | None = None

    def run(self, source: LogSource, statement: str) -> tuple[dict[str, Any], bytearray]:
        """Send the request and return the answer; raises `QueryTimeout`, `QueryFailed`, `_LostUnheard`."""
        folder = source.folder
        if source.fetch is not None and folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
        request = wire.Request(
            statement=statement,
            folder=folder,
            files=tuple(file[len(folder) + 1 :] for day in source.days for file in day.files),
            days=tuple(day.day for day in source.days for _ in day.files),
            wait=source.fetch is not None,
            seconds=max(self._deadline - time.monotonic(), 0.001),
            max_rows=self._limits.max_rows,
            max_bytes=self._limits.max_bytes,
            max_columns=self._limits.max_columns,
        )
        channel = self._process.channel
        try:
            channel.settimeout(self._limits.seconds)
            channel.sendall(wire.encode(request.as_json()))
            document = self._read_head()
            if document["kind"] == "checked":
                self._checked = document
                if source.fetch is not None:
                    # The process is not trusted to name a file that is not the tenant's.
                    source.fetch([f"{folder}/{file}" for file in document["files"] if file in request.files])
                    channel.sendall(wire.encode({}))
                document = self._read_head()
            length = int(document["body"])
            if length > self._limits.max_bytes + _FRAMING_BYTES:
                raise QueryFailed("The result is larger than a result may be.")
            return document, self._read(length)
        except (wire.ConnectionEnded, BrokenPipeError, ConnectionResetError):
            if time.monotonic() >= self._deadline:
                raise self._timeout() from None
            if self._checked is None:
                raise _LostUnheard from None
            raise _crashed(self._limits) from None

    def _read_head(self) -> dict[str, Any]:
        length = wire.decode_length(self._read(wire.LENGTH_BYTES))
        if length > _FRAMING_BYTES:
            raise QueryFailed("The result's names and types are larger than those of a result may be.")
        return wire.decode_head(self._read(length))

    def _read(self, length: int) -> bytearray:
        """Read ``length`` bytes before the deadline."""
        data = bytearray(length)
        view = memoryview(data)
        while view:
            self._wait()
            count = self._process.channel.recv_into(view)
            if count == 0:
                raise wire.ConnectionEnded
            view = view[count:]
        return data

    def _wait(self) -> None:
        while True:
            now = time.monotonic()
            if now >= self._deadline:
                raise self._timeout()
            until = min(self._deadline, self._yielding.look_at)
            # Rounded up: a poll of 0 ms in the last millisecond would spin.
            if self._poll.poll(int(max(until - now, 0) * 1000) + 1):
                if self._abandonment and self._abandonment.is_declared():
                    raise QueryAbandoned
                return
            if time.monotonic() >= self._yielding.look_at:
                self._yielding.look()

    def _timeout(self) -> QueryTimeout:
        message = f"The query took longer than {self._limits.seconds:g} seconds."
        if self._checked and self._checked["readsLog"] and not self._checked["namesDay"]:
            message += (
                " It names no day, so it reads the tenant's whole history: add a predicate such as"
                " day >= '2026-01-31'."
            )
        elif self._checked:
            message += " Narrow the days it reads, or compute less."
        return QueryTimeout(message)


def _crashed(limits: Limits) -> QueryFailed:
    return QueryFailed(
        "The engine stopped while it ran this query: it needs more memory than a query may use"
        f" ({limits.memory_bytes >> 20} MiB), or nests too deeply."
    )


def _result(
    document: dict[str, Any], body: bytearray, *, statement: str, limits: Limits, elapsed_ms: int
) -> QueryResult:
    match document["kind"]:
        case "result":
            pass
        case "rejected":
            raise QueryRejected(with_place(document["message"], statement, document["position"]))
        case "failed":
            raise QueryFailed(with_place(document["message"], statement, document["position"]))
        case "memory":
            raise QueryFailed(
                f"The query needs more memory than a query may use ({limits.memory_bytes >> 20} MiB)."
                " Narrow the days it reads, or aggregate before joining and sorting."
            )
        case "fault":
            logger.error("A query process failed: %s", document["message"])
            raise EngineUnavailable
        case _:
            raise _crashed(limits)
    for name, type_ in document["columns"]:
        _refuse_cut_name(name, type_)
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            batches = tuple(_trusted(batch) for batch in reader) or (_trusted(no_rows(reader.schema)),)
    except pa.ArrowException:
        logger.exception("A query process sent a result that is not valid")
        raise EngineUnavailable from None
    names = unique_names(name for name, _ in document["columns"])
    return QueryResult(
        columns=tuple(
            ResultColumn(name, type_) for name, (_, type_) in zip(names, document["columns"], strict=True)
        ),
        batches=batches,
        row_count=sum(batch.num_rows for batch in batches),
        truncated=bool(document["truncated"]),
        elapsed_ms=elapsed_ms,
    )


def _refuse_cut_name(column: str, type_: str) -> None:
    """Raise `QueryFailed` for a name with NUL. Arrow ends it there, so that two fields may be one."""
    for name in (column, *_QUOTED.findall(type_)):
        if "\0" in name:
            raise QueryFailed(
                f"The name {json.dumps(name[:_SHOWN_NAME], ensure_ascii=False)} holds NUL, which no name of a"
                " result may. Name it otherwise, or cast what holds it to JSON."
            )


def _trusted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Check that what the process sent is what its type says, memory and all; raises `ArrowException`."""
    columns = []
    for column in batch.columns:
        column.validate()
        as_integers(column).validate(full=True)
        columns.append(with_plain_booleans(column))
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def unique_names(names: Iterable[str]) -> list[str]:
    """Give each repeated name the first free suffix ``_1``, ``_2``, … and leave every first one alone."""
    given = list(names)
    taken = set(given)
    seen: set[str] = set()
    unique: list[str] = []
    suffix: dict[str, int] = {}
    for name in given:
        result = name
        if name in seen:
            number = suffix.get(name, 0) + 1
            while f"{name}_{number}" in taken:
                number += 1
            suffix[name] = number
            result = f"{name}_{number}"
            taken.add(result)
        seen.add(name)
        unique.append(result)
    return unique
