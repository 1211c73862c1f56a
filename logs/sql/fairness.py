"""Share a number of running slots among tenants: nobody's queue stands before somebody else's.

Pure: threads and nothing else.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter, deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


#: Seconds between two looks whether a waiting caller has given up.
_LOOK_SECONDS: Final = 0.25


class GateTimeout(Exception):
    """No slot became free before the deadline."""


class GateAbandoned(Exception):
    """The caller gave up while it waited."""


class GateFull(Exception):
    """As many wait for a slot as may."""


class FairGate:
    """At most ``slots`` callers inside, at most ``per_tenant`` of one tenant; ``queue`` more may wait, of one
    tenant half of them, rounded up.

    A free slot goes to the waiting tenant with the fewest inside; among equals to the one that has
    waited longest for a turn. Within a tenant the order is that of arrival.
    """

    def __init__(
        self, *, slots: int, per_tenant: int, queue: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._slots = slots
        self._per_tenant = per_tenant
        self._queue = queue
        self._clock = clock
        self._changed = threading.Condition()
        self._inside: Counter[str] = Counter()
        self._waiting: dict[str, deque[int]] = {}
        self._granted: set[int] = set()
        self._last_turn: dict[str, int] = {}
        self._turns = itertools.count(1)
        self._tickets = itertools.count()

    @property
    def inside(self) -> int:
        """The number of callers inside now."""
        with self._changed:
            return self._inside.total()

    @property
    def waiting(self) -> int:
        """The number of callers that wait for a slot."""
        with self._changed:
            return sum(map(len, self._waiting.values()))

    @contextmanager
    def enter(
        self, tenant: str, *, deadline: float, is_abandoned: Callable[[], bool] | None = None
    ) -> Iterator[None]:
        """Hold a slot for the block.

        Raises `GateFull` at once where it would have to wait and no more may; `GateTimeout` at ``deadline``
        (of the gate's clock); `GateAbandoned` soon after ``is_abandoned`` becomes true.
        """
        self._acquire(tenant, deadline, is_abandoned)
        try:
            yield
        finally:
            self._release(tenant)

    def _acquire(self, tenant: str, deadline: float, is_abandoned: Callable[[], bool] | None) -> None:
        with self._changed:
            ticket = next(self._tickets)
            self._waiting.setdefault(tenant, deque()).append(ticket)
            self._grant()
            if ticket not in self._granted and self._is_overfull(tenant):
                self._withdraw(tenant, ticket)
                raise GateFull
            while ticket not in self._granted:
                if is_abandoned and is_abandoned():
                    self._withdraw(tenant, ticket)
                    raise GateAbandoned
                left = deadline - self._clock()
                if left <= 0:
                    self._withdraw(tenant, ticket)
                    raise GateTimeout
                self._changed.wait(min(left, _LOOK_SECONDS) if is_abandoned else left)
            self._granted.remove(ticket)

    def _release(self, tenant: str) -> None:
        with self._changed:
            self._inside[tenant] -= 1
            if not self._inside[tenant]:
                del self._inside[tenant]
            self._grant()

    def _is_overfull(self, tenant: str) -> bool:
        of_tenant = len(self._waiting[tenant])
        return of_tenant > -(-self._queue // 2) or sum(map(len, self._waiting.values())) > self._queue

    def _withdraw(self, tenant: str, ticket: int) -> None:
        self._waiting[tenant].remove(ticket)
        if not self._waiting[tenant]:
            del self._waiting[tenant]

    def _grant(self) -> None:
        """Hand out free slots. The caller holds the lock."""
        while self._inside.total() < self._slots:
            candidates = [tenant for tenant in self._waiting if self._inside[tenant] < self._per_tenant]
            if not candidates:
                break
            tenant = min(candidates, key=lambda name: (self._inside[name], self._last_turn.get(name, 0)))
            ticket = self._waiting[tenant].popleft()
            if not self._waiting[tenant]:
                del self._waiting[tenant]
            self._inside[tenant] += 1
            self._last_turn[tenant] = next(self._turns)
            self._granted.add(ticket)
        if not self._waiting and not self._inside:
            self._last_turn.clear()
        self._changed.notify_all()
