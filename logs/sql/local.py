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
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from logs.sql import guard, wire
from logs.sql.arrays import as_integers, empty_batch, with_plain_booleans
from logs.sql.errors import EngineUnavailable, QueryFailed, QueryRejected
from logs.sql.exchange import Exchange, ProcessDiedBeforeReply, crashed
from logs.sql.leases import Lease, LeaseKey, LeaseOptions
from logs.sql.long_queries import LongQueryQueues
from logs.sql.messages import with_position
from logs.sql.pool import PoolBroken, ProcessPool
from logs.sql.priority import QueryPriority
from logs.sql.protocol import Limits, LogSource, NotTranslated, QueryResult, ResultColumn, Translated
from logs.sql.semaphore import FairSemaphore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from logs.sql.cancellation import Cancellation
    from logs.sql.options import SqlOptions
    from logs.sql.process import QueryProcess

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

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
        started: float | None = None,
    ) -> QueryResult:
        """See `protocol.Engine.execute`. The time limit includes the wait for a slot.

        ``started`` is when the query began, by `time.monotonic`, if that was before this call.
        """
        return self._exchange(source, statement, limits, cancellation, read=_result, started=started)

    def translate(
        self, *, source: LogSource, statement: str, limits: Limits, cancellation: Cancellation | None = None
    ) -> Translated | NotTranslated:
        """Check a statement as `execute` does, and translate it for Spark instead of running it.

        Raises:
            ApiError: as `execute`.
        """
        return self._exchange(source, statement, limits, cancellation, read=read_translation, translate=True)

    def _exchange(
        self,
        source: LogSource,
        statement: str,
        limits: Limits,
        cancellation: Cancellation | None,
        *,
        read: Callable[..., Answer],
        started: float | None = None,
        translate: bool = False,
    ) -> Answer:
        started = time.monotonic() if started is None else started
        deadline = started + limits.seconds
        try:
            guard.check_text(statement)
        except guard.Refused as refusal:
            raise QueryRejected(with_position(refusal.message, statement, refusal.position)) from None
        is_cancelled = cancellation.is_cancelled if cancellation else None
        exchange = functools.partial(
            Exchange, deadline=deadline, limits=limits, cancellation=cancellation, translate=translate
        )
        try:
            with self._semaphore.slot(source.tenant_id, deadline=deadline, is_cancelled=is_cancelled):
                run = functools.partial(
                    self._run, source, statement, limits=limits, exchange=exchange, started=started, read=read
                )
                try:
                    return run()
                except ProcessDiedBeforeReply:
                    # Somebody killed the idle process, or the statement crashed it. Then it crashes again.
                    return run(fresh=True)
        except ProcessDiedBeforeReply:
            raise crashed(limits) from None
        except PoolBroken as broken:
            logger.exception("No query process could be started")
            raise EngineUnavailable from broken

    def _run(
        self,
        source: LogSource,
        statement: str,
        *,
        limits: Limits,
        exchange: Callable[[QueryProcess, QueryPriority], Exchange],
        started: float,
        read: Callable[..., Answer],
        fresh: bool = False,
    ) -> Answer:
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
            return read(document, body, statement=statement, limits=limits, elapsed_ms=elapsed_ms)
        except EngineUnavailable:  # the result is not what its types say
            is_reusable = False
            raise
        finally:
            priority.end()
            if is_reusable:
                self._pool.leases.give_back(lease)
            else:
                lease.process.end()

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


def _result(
    document: dict[str, Any], body: bytearray, *, statement: str, limits: Limits, elapsed_ms: int
) -> QueryResult:
    _raise_error(document, statement=statement, limits=limits)
    columns, batches = _read_rows(document, body)
    return QueryResult(
        columns=columns,
        batches=batches,
        row_count=sum(batch.num_rows for batch in batches),
        truncated=bool(document["truncated"]),
        elapsed_ms=elapsed_ms,
        days=None if document["days"] is None else tuple(map(str, document["days"])),
    )


def read_translation(
    document: dict[str, Any], body: bytearray, *, statement: str, limits: Limits, **_: Any
) -> Translated | NotTranslated:
    """Return what a query process answered to a request for a translation."""
    _raise_error(document, statement=statement, limits=limits)
    days = tuple(map(str, document["reads"]))
    if document["kind"] == "not translated":
        return NotTranslated(with_position(str(document["what"]), statement, document["position"]), days)
    columns, batches = _read_rows(document, body)
    return Translated(
        sql=str(document["sql"]),
        relations=int(document["relations"]),
        columns=columns,
        schema=batches[0].schema,
        reads=days,
        is_repeatable=document["days"] is not None,
    )


def _raise_error(document: dict[str, Any], *, statement: str, limits: Limits) -> None:
    """Raise the error that a query process answered with, if it did."""
    match document["kind"]:
        case "result" | "translated" | "not translated":
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
            raise crashed(limits)


def _read_rows(
    document: dict[str, Any], body: bytearray
) -> tuple[tuple[ResultColumn, ...], tuple[pa.RecordBatch, ...]]:
    for name, type_ in document["columns"]:
        _refuse_nul_in_names(name, type_)
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            batches = tuple(_validate(batch) for batch in reader) or (_validate(empty_batch(reader.schema)),)
    except pa.ArrowException:
        logger.exception("A query process sent an invalid result")
        raise EngineUnavailable from None
    names = unique_names(name for name, _ in document["columns"])
    columns = tuple(
        ResultColumn(name, type_) for name, (_, type_) in zip(names, document["columns"], strict=True)
    )
    return columns, batches


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
