"""An engine that runs queries in sandboxed processes on this machine, fairly between tenants.

This process does not parse the statement. It limits the size of what the query process sends, and validates
it before use.

Imports no Django.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from logs.sql import guard, sandbox, wire
from logs.sql.engines.exchange import Answer, Exchange, Job, ProcessDied, crashed
from logs.sql.engines.pool import (
    Lease,
    LeaseKey,
    LongQueryQueues,
    PoolBroken,
    ProcessPool,
    QueryPriority,
)
from logs.sql.engines.translation import DuckdbStatement, SparkStatement
from logs.sql.options import LeaseOptions
from logs.sql.protocol import (
    EngineUnavailable,
    Limits,
    LogSource,
    QueryCancelled,
    QueryFailed,
    QueryInterrupted,
    QueryRejected,
    QueryResult,
    QueryTimeout,
)
from logs.sql.refusals import Refusal, with_position

if TYPE_CHECKING:
    from logs.sql.options import SqlOptions
    from logs.sql.protocol import Cancellation

logger: Final = logging.getLogger(__name__)

#: Seconds between two checks whether a waiting caller has cancelled.
_CANCEL_CHECK_SECONDS: Final = 0.25


class SlotTimeout(QueryTimeout):
    """No slot became free before the deadline."""

    message = "No query could start within its time limit: too many are running. Try again."


class QueueFull(QueryTimeout):
    """The maximum number of callers are waiting already."""

    message = "Too many queries are waiting for their turn already. Try again."


class FairSemaphore:
    """A semaphore that one tenant cannot block for the others.

    A free slot goes to the waiting tenant that holds the fewest slots; on a tie, to the tenant whose last
    turn is longest ago. Within a tenant, callers take turns in the order of their arrival.

    Args:
        slots: how many callers may hold a slot at a time.
        per_tenant: how many of these may belong to one tenant.
        queue: how many more may wait. One tenant may have half of them, rounded up.
    """

    def __init__(self, *, slots: int, per_tenant: int, queue: int) -> None:
        self._slots = slots
        self._per_tenant = per_tenant
        self._queue = queue
        self._changed = threading.Condition()
        self._holding: Counter[str] = Counter()
        self._waiting: dict[str, deque[int]] = {}
        self._granted: set[int] = set()
        self._last_turn: dict[str, int] = {}
        self._turns = itertools.count(1)
        self._tickets = itertools.count()

    @property
    def holding(self) -> int:
        """The number of callers that hold a slot now."""
        with self._changed:
            return self._holding.total()

    @property
    def waiting(self) -> int:
        """The number of callers that wait for a slot now."""
        with self._changed:
            return sum(map(len, self._waiting.values()))

    @contextmanager
    def slot(
        self, tenant: str, *, deadline: float, is_cancelled: Callable[[], bool] | None = None
    ) -> Iterator[None]:
        """Hold a slot for the block.

        Raises:
            QueueFull: the caller would have to wait, and the queue is full.
            SlotTimeout: no slot was free before ``deadline``, a time of the semaphore's clock.
            QueryCancelled: ``is_cancelled`` returned True. It is called every 0.25 seconds.
        """
        self._acquire(tenant, deadline, is_cancelled)
        try:
            yield
        finally:
            self._release(tenant)

    def _acquire(self, tenant: str, deadline: float, is_cancelled: Callable[[], bool] | None) -> None:
        with self._changed:
            ticket = next(self._tickets)
            self._waiting.setdefault(tenant, deque()).append(ticket)
            self._grant_slots()
            if ticket not in self._granted and self._is_queue_exceeded(tenant):
                self._remove_waiting(tenant, ticket)
                raise QueueFull
            while ticket not in self._granted:
                if is_cancelled and is_cancelled():
                    self._remove_waiting(tenant, ticket)
                    raise QueryCancelled
                left = deadline - time.monotonic()
                if left <= 0:
                    self._remove_waiting(tenant, ticket)
                    raise SlotTimeout
                self._changed.wait(min(left, _CANCEL_CHECK_SECONDS) if is_cancelled else left)
            self._granted.remove(ticket)

    def _release(self, tenant: str) -> None:
        with self._changed:
            self._holding[tenant] -= 1
            if not self._holding[tenant]:
                del self._holding[tenant]
            self._grant_slots()

    def _is_queue_exceeded(self, tenant: str) -> bool:
        of_tenant = len(self._waiting[tenant])
        return of_tenant > -(-self._queue // 2) or sum(map(len, self._waiting.values())) > self._queue

    def _remove_waiting(self, tenant: str, ticket: int) -> None:
        self._waiting[tenant].remove(ticket)
        if not self._waiting[tenant]:
            del self._waiting[tenant]

    def _grant_slots(self) -> None:
        """Give free slots to waiting callers. The caller holds the lock."""
        while self._holding.total() < self._slots:
            candidates = [tenant for tenant in self._waiting if self._holding[tenant] < self._per_tenant]
            if not candidates:
                break
            tenant = min(candidates, key=lambda name: (self._holding[name], self._last_turn.get(name, 0)))
            ticket = self._waiting[tenant].popleft()
            if not self._waiting[tenant]:
                del self._waiting[tenant]
            self._holding[tenant] += 1
            self._last_turn[tenant] = next(self._turns)
            self._granted.add(ticket)
        if not self._waiting and not self._holding:
            self._last_turn.clear()
        self._changed.notify_all()


class LocalEngine:
    """Runs queries in processes. Each process belongs to one tenant.

    Args:
        slots: how many queries run at a time.
        per_tenant: how many of these may be one tenant's.
        queue: how many more may wait. One tenant may have half of them.
        warm: how many processes are kept ready.
        default_limits: the limits of the ready processes.
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
        if missing := sandbox.missing_restrictions():
            logger.warning(
                "This kernel lacks %s: query processes are restricted without it (docs/security.md)",
                " and ".join(missing),
            )

    @classmethod
    def from_options(cls, options: SqlOptions) -> LocalEngine:
        """Return an engine with the operator's settings."""
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

        ``started`` is a time of the monotonic clock, if the query began before this call.
        """
        started = time.monotonic() if started is None else started
        job = Job(source, statement, limits, started + limits.seconds, cancellation)
        answer = self._answer(job)
        days = answer.document["days"]
        return QueryResult(
            columns=answer.columns,
            batches=answer.batches,
            row_count=sum(batch.num_rows for batch in answer.batches),
            truncated=bool(answer.document["truncated"]),
            days=None if days is None else tuple(map(str, days)),
        )

    def check(self, *, seconds: float) -> None:
        """Run a statement over no rows, outside of the slots, as a check of health.

        Raises:
            ApiError: queries do not work.
        """
        limits = replace(self._default_limits, seconds=seconds)
        source = LogSource(tenant_id="", days=())
        job = Job(source, "SELECT count(*) FROM proxy_logs", limits, time.monotonic() + seconds, None)
        try:
            answer = self._send(job)
        except (ProcessDied, PoolBroken) as error:
            raise EngineUnavailable from error
        _raise_error(answer.document, job)

    def translate(
        self, *, source: LogSource, statement: str, limits: Limits, cancellation: Cancellation | None = None
    ) -> SparkStatement | DuckdbStatement:
        """Check a statement as `execute` does, and translate it for Spark instead of running it.

        Raises:
            ApiError: as `execute`.
        """
        deadline = time.monotonic() + limits.seconds
        job = Job(source, statement, limits, deadline, cancellation, translate=True)
        return _translation(self._answer(job), statement)

    def _answer(self, job: Job) -> Answer:
        """Wait for a slot, and return what a query process answers.

        Raises:
            ApiError: as `execute`.
        """
        try:
            guard.check_text(job.statement)
        except Refusal as refusal:
            raise QueryRejected(with_position(refusal.message, job.statement, refusal.position)) from None
        is_cancelled = job.cancellation.is_cancelled if job.cancellation else None
        try:
            with self._semaphore.slot(job.source.tenant_id, deadline=job.deadline, is_cancelled=is_cancelled):
                try:
                    answer = self._send(job)
                except ProcessDied as died:
                    if died.has_replied:
                        raise
                    # The idle process was killed, or the statement crashed it. Then it crashes again.
                    answer = self._send(job, fresh=True)
        except ProcessDied as died:
            raise (QueryInterrupted() if died.was_killed else crashed(job.limits)) from None
        except PoolBroken as broken:
            logger.exception("No query process could be started")
            raise EngineUnavailable from broken
        _raise_error(answer.document, job)
        return answer

    def _send(self, job: Job, *, fresh: bool = False) -> Answer:
        """Send a job to the process that is leased to the tenant, or to a new one if ``fresh``."""
        process_limits = self._process_limits(job.limits)
        key = LeaseKey.of(job.source, process_limits)
        lease = None if fresh else self._pool.leases.take(key)
        if lease is None:
            lease = Lease(key, self._pool.take(limits=process_limits, fresh=fresh))
        priority = QueryPriority(
            lease.process,
            tenant=job.source.tenant_id,
            threads=self._default_limits.threads,
            long_queries=self._long_queries,
        )
        is_reusable = False
        try:
            answer = Exchange(lease.process, priority, job).send()
            is_reusable = answer.is_reusable and not priority.is_lowered
        except ProcessDied as died:
            died.was_killed = self._pool.was_killed(lease.process)
            raise
        else:
            return answer
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


def _translation(answer: Answer, statement: str) -> SparkStatement | DuckdbStatement:
    """Return the statement for Spark in an answer, or why only DuckDB can run the statement."""
    document = answer.document
    days = tuple(map(str, document["reads"]))
    if document["kind"] == "not translated":
        return DuckdbStatement(with_position(str(document["what"]), statement, document["position"]), days)
    return SparkStatement(
        sql=str(document["sql"]),
        relations=int(document["relations"]),
        columns=answer.columns,
        schema=answer.batches[0].schema,
        reads=days,
        is_repeatable=document["days"] is not None,
    )


def _raise_error(document: dict[str, Any], job: Job) -> None:
    """Raise the error in an answer, if it has one."""
    match document["kind"]:
        case "result" | "translated" | "not translated":
            pass
        case "rejected":
            raise QueryRejected(with_position(document["message"], job.statement, document["position"]))
        case "failed":
            raise QueryFailed(with_position(document["message"], job.statement, document["position"]))
        case "memory":
            raise QueryFailed(
                f"The query needs more memory than a query may use ({job.limits.memory_bytes >> 20} MiB)."
                " Narrow the days it reads, or aggregate before joining and sorting."
            )
        case "internal":
            raise QueryFailed(
                "The engine has a fault with this statement. Write it in another way, for example with casts"
                " to the types that you expect."
            )
        case "fault":
            logger.error("A query process failed: %s", document["message"])
            raise EngineUnavailable
        case _:
            raise crashed(job.limits)
