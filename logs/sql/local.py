"""An engine that runs queries in sandboxed processes on this machine. Implements `protocol.Engine`.

This process does not parse the statement. It limits the size of what the query process sends, and validates
it before use.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import select
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from logs.sql import guard, wire
from logs.sql.arrays import as_integers, empty_batch, with_plain_booleans
from logs.sql.errors import EngineUnavailable, QueryCancelled, QueryFailed, QueryRejected, QueryTimeout
from logs.sql.leases import Lease, LeaseKey, LeaseOptions
from logs.sql.long_queries import LongQueryQueues
from logs.sql.messages import with_position
from logs.sql.pool import PoolBroken, ProcessPool
from logs.sql.priority import QueryPriority
from logs.sql.protocol import Limits, LogSource, QueryResult, ResultColumn
from logs.sql.semaphore import FairSemaphore, QueueFull, SlotCancelled, SlotTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from logs.sql.cancellation import Cancellation
    from logs.sql.options import SqlOptions
    from logs.sql.process import QueryProcess

logger = logging.getLogger(__name__)

#: Bytes by which the Arrow stream of a result may exceed ``max_bytes``, and maximum bytes of a frame's head.
_FRAMING_BYTES: Final = 8 << 20

#: A quoted name in a DuckDB type.
_QUOTED_NAME: Final = re.compile(r'"((?:[^"]|"")*)"')

#: Characters of a name that a message quotes.
_NAME_CHARACTERS: Final = 60


class LocalEngine:
    """Runs queries in processes, each of which belongs to one tenant.

    Args:
        slots: how many queries run at a time.
        per_tenant: how many of them may be one tenant's.
        queue: how many more may wait. One tenant may have half of them.
        warm: how many processes are kept ready.
        default_limits: the limits that those processes are for.
        leases: how long a process is kept for the tenant's next query.
    """

    def __init__(
        self,
        *,
        slots: int,
        per_tenant: int,
        queue: int,
        warm: int,
        default_limits: Limits,
        leases: LeaseOptions | None = None,
    ) -> None:
        self._semaphore = FairSemaphore(slots=slots, per_tenant=per_tenant, queue=queue)
        # More long queries at a time than processors would only slow each other down.
        self._long_queries = LongQueryQueues(width=max(1, (os.cpu_count() or 1) // default_limits.threads))
        self._default_limits = default_limits
        self._lease_options = leases or LeaseOptions()
        self._pool = ProcessPool(
            warm=warm, limits=self._process_limits(default_limits), leases=self._lease_options
        )

    @classmethod
    def from_options(cls, options: SqlOptions) -> LocalEngine:
        """Return an engine with the settings of the operator."""
        return cls(
            slots=options.slots,
            per_tenant=options.slots_per_tenant,
            queue=options.queue,
            warm=options.warm,
            default_limits=options.limits,
            leases=options.leases,
        )

    def execute(
        self,
        *,
        source: LogSource,
        statement: str,
        limits: Limits,
        cancellation: Cancellation | None = None,
    ) -> QueryResult:
        """See `protocol.Engine.execute`. The time limit includes the wait for a slot."""
        started = time.monotonic()
        deadline = started + limits.seconds
        try:
            guard.check_text(statement)
        except guard.Refused as refusal:
            raise QueryRejected(with_position(refusal.message, statement, refusal.position)) from None
        is_cancelled = cancellation.is_cancelled if cancellation else None
        exchange = functools.partial(_Exchange, deadline=deadline, limits=limits, cancellation=cancellation)
        try:
            with self._semaphore.slot(source.tenant_id, deadline=deadline, is_cancelled=is_cancelled):
                run = functools.partial(
                    self._run, source, statement, limits=limits, exchange=exchange, started=started
                )
                try:
                    return run()
                except _ProcessDiedBeforeReply:
                    # Somebody killed the idle process, or the statement crashed it. Then it crashes again.
                    return run(fresh=True)
        except _ProcessDiedBeforeReply:
            raise _crashed(limits) from None
        except SlotTimeout:
            raise QueryTimeout(
                f"No query could start within {limits.seconds:g} seconds: too many are running. Try again."
            ) from None
        except SlotCancelled:
            raise QueryCancelled from None
        except QueueFull:
            raise QueryTimeout("Too many queries are waiting for their turn already. Try again.") from None
        except PoolBroken as broken:
            logger.exception("No query process could be started")
            raise EngineUnavailable from broken

    def _run(
        self,
        source: LogSource,
        statement: str,
        *,
        limits: Limits,
        exchange: Callable[[QueryProcess, QueryPriority], _Exchange],
        started: float,
        fresh: bool = False,
    ) -> QueryResult:
        process_limits = self._process_limits(limits)
        key = LeaseKey.of(source, process_limits)
        lease = None if fresh else self._pool.leases.take(key)
        if lease is None:
            lease = Lease(key, self._pool.take(limits=process_limits, fresh=fresh))
        priority = QueryPriority(
            lease.process,
            tenant=source.tenant_id,
            threads=self._default_limits.threads,
            long_queries=self._long_queries,
        )
        is_reusable = False
        try:
            document, body = exchange(lease.process, priority).run(source, statement)
            elapsed_ms = round((time.monotonic() - started) * 1000)
            is_ordinary = document["kind"] in wire.ORDINARY_KINDS
            is_reusable = is_ordinary and document["isReusable"] is True and not priority.is_lowered
            return _result(document, body, statement=statement, limits=limits, elapsed_ms=elapsed_ms)
        except EngineUnavailable:  # the result is not what its types say
            is_reusable = False
            raise
        finally:
            priority.end()
            if is_reusable:
                self._pool.leases.give_back(lease)
            else:
                lease.process.end()
            self._pool.refill()

    def _process_limits(self, limits: Limits) -> wire.ProcessLimits:
        return wire.ProcessLimits(
            # Limits the processor time. At least the default, so that queries with a shorter deadline can use
            # a warm process.
            seconds=max(limits.seconds, self._default_limits.seconds),
            memory_bytes=limits.memory_bytes,
            threads=limits.threads,
            idle_seconds=self._lease_options.idle_seconds if self._lease_options.processes else 0,
            earlier_seconds=self._lease_options.processor_seconds,
        )

    @property
    def running(self) -> int:
        """The number of queries that are running now."""
        return self._semaphore.holding

    def leased_pids(self) -> list[int]:
        """Return the ids of the processes that wait for the next query of their tenant."""
        return [process.pid for process in self._pool.leases.processes()]

    def close(self) -> None:
        """End every process of this engine."""
        self._pool.close()


class _ProcessDiedBeforeReply(Exception):
    """The process ended before it replied that the statement is allowed or refused."""


class _Exchange:
    """The request to one query process, and its answer."""

    def __init__(
        self,
        process: QueryProcess,
        priority: QueryPriority,
        *,
        deadline: float,
        limits: Limits,
        cancellation: Cancellation | None,
    ) -> None:
        self._process = process
        self._priority = priority
        self._deadline = deadline
        self._limits = limits
        self._cancellation = cancellation
        self._poll = select.poll()
        self._poll.register(process.channel, select.POLLIN)
        if cancellation:
            self._poll.register(cancellation, select.POLLIN)
        self._checked: dict[str, Any] | None = None

    def run(self, source: LogSource, statement: str) -> tuple[dict[str, Any], bytearray]:
        """Send the request. Return the JSON and the body of the answer.

        Raises:
            QueryTimeout: there was no answer before the deadline.
            QueryFailed: the answer is too large, or the process crashed.
            QueryCancelled: the caller cancelled the query.
            _ProcessDiedBeforeReply: a second process may answer.
        """
        folder = source.folder
        if source.fetch is not None and folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
        request = wire.Request(
            statement=statement,
            folder=folder,
            files=tuple(file[len(folder) + 1 :] for day in source.days for file in day.files),
            days=tuple(day.day for day in source.days for _ in day.files),
            wait=source.fetch is not None,
            has_positions=source.has_positions,
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
                    # Do not trust the process: fetch only the tenant's files.
                    source.fetch([f"{folder}/{file}" for file in document["files"] if file in request.files])
                    channel.sendall(wire.encode({}))
                document = self._read_head()
            length = int(document["body"])
            if length > self._limits.max_bytes + _FRAMING_BYTES:
                raise QueryFailed("The result is larger than allowed.")
            return document, self._read(length)
        except (wire.ConnectionEnded, BrokenPipeError, ConnectionResetError):
            if time.monotonic() >= self._deadline:
                raise self._timeout() from None
            if self._checked is None:
                raise _ProcessDiedBeforeReply from None
            raise _crashed(self._limits) from None

    def _read_head(self) -> dict[str, Any]:
        length = wire.decode_length(self._read(wire.LENGTH_BYTES))
        if length > _FRAMING_BYTES:
            raise QueryFailed("The result's names and types are larger than allowed.")
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
            until = min(self._deadline, self._priority.next_update_at)
            # Rounded up: in the last millisecond, polls of 0 ms would be a busy loop.
            if self._poll.poll(int(max(until - now, 0) * 1000) + 1):
                if self._cancellation and self._cancellation.is_cancelled():
                    raise QueryCancelled
                return
            if time.monotonic() >= self._priority.next_update_at:
                self._priority.update()

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
            raise QueryRejected(with_position(document["message"], statement, document["position"]))
        case "failed":
            raise QueryFailed(with_position(document["message"], statement, document["position"]))
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
        _refuse_nul_in_names(name, type_)
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            batches = tuple(_validate(batch) for batch in reader) or (_validate(empty_batch(reader.schema)),)
    except pa.ArrowException:
        logger.exception("A query process sent an invalid result")
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


def _refuse_nul_in_names(column: str, type_: str) -> None:
    """Raise `QueryFailed` for a name with NUL. Arrow ends names there, so two fields could get one name."""
    for name in (column, *_QUOTED_NAME.findall(type_)):
        if "\0" in name:
            raise QueryFailed(
                f"The name {json.dumps(name[:_NAME_CHARACTERS], ensure_ascii=False)} contains NUL, which is"
                " not allowed in names of a result. Choose another name, or cast the value to JSON."
            )


def _validate(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with plain booleans if its memory is what its types say.

    Raises:
        ArrowException: it is not.
    """
    columns = []
    for column in batch.columns:
        column.validate()
        as_integers(column).validate(full=True)
        columns.append(with_plain_booleans(column))
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def unique_names(names: Iterable[str]) -> list[str]:
    """Add the first free suffix ``_1``, ``_2``, … to each repetition of a name."""
    names = list(names)
    taken = set(names)
    seen: set[str] = set()
    unique: list[str] = []
    last_suffix: dict[str, int] = {}
    for name in names:
        result = name
        if name in seen:
            suffix = last_suffix.get(name, 0) + 1
            while f"{name}_{suffix}" in taken:
                suffix += 1
            last_suffix[name] = suffix
            result = f"{name}_{suffix}"
            taken.add(result)
        seen.add(name)
        unique.append(result)
    return unique
