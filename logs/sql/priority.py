"""Lower the priority of a query's process in steps, as it uses more processor time."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from logs.sql.long_queries import LongQueryQueues
    from logs.sql.process import QueryProcess

#: Processor seconds of each step. First, short queries run before this one. Then it joins the queue of the
#: tenant's long queries. Last, it leaves that queue, and all other queries run before it.
_LOW_PRIORITY_SECONDS: Final = 0.15
_QUEUE_SECONDS: Final = 0.5
_LOWEST_PRIORITY_SECONDS: Final = 6.0

#: The ``nice`` values of a query that is no longer short, and of one that has left the queue.
_LOW: Final = 10
_LOWEST: Final = 19

#: Minimum seconds between two updates.
_UPDATE_SECONDS: Final = 0.02


class QueryPriority:
    """The priority of one query process with up to ``threads`` threads. Not thread-safe.

    Each step only lowers the priority, which needs no privilege.

    Attributes:
        next_update_at: no step is due before this time of the monotonic clock.
        is_lowered: a step was taken. The priority is never raised again.
    """

    def __init__(
        self, process: QueryProcess, *, tenant: str, threads: int, long_queries: LongQueryQueues
    ) -> None:
        self._process = process
        self._threads = threads
        self._used_before = process.used_seconds()
        self.is_lowered = False
        self._leave_queue: Callable[[], None] = lambda: long_queries.remove(tenant, process)
        self._steps: list[tuple[float, Callable[[], None]]] = [
            (_LOW_PRIORITY_SECONDS, lambda: process.lower_priority(_LOW)),
            (_QUEUE_SECONDS, lambda: long_queries.add(tenant, process)),
            (_LOWEST_PRIORITY_SECONDS, self._run_after_others),
        ]
        self.next_update_at = 0.0
        self.update()

    def update(self) -> None:
        """Take the steps that are due."""
        used = self._process.used_seconds() - self._used_before
        while self._steps and used >= self._steps[0][0]:
            self.is_lowered = True
            self._steps.pop(0)[1]()
        self.next_update_at = time.monotonic() + self._seconds_to_next_step(used)

    def end(self) -> None:
        """Let the next long query run. Call this before the process ends, however the query ended."""
        self._leave_queue()

    def _run_after_others(self) -> None:
        self._process.lower_priority(_LOWEST)
        self._leave_queue()

    def _seconds_to_next_step(self, used: float) -> float:
        if not self._steps:
            return math.inf
        return max((self._steps[0][0] - used) / self._threads, _UPDATE_SECONDS)
