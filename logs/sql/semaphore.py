"""Share a fixed number of slots for queries fairly between tenants. Imports no Django."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter, deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from logs.sql.errors import QueryCancelled, QueryTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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

    def __init__(
        self, *, slots: int, per_tenant: int, queue: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._slots = slots
        self._per_tenant = per_tenant
        self._queue = queue
        self._clock = clock
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
                left = deadline - self._clock()
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
