"""What a query's process does for the others: the more processor time it has used, the more it yields."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from logs.sql.lanes import Lanes
    from logs.sql.pool import QueryProcess

#: Processor seconds after which a query yields to short ones, after which it waits for its turn among the
#: tenant's long ones, and after which it has had its turn and runs only when nothing else wants to.
_SHORT_SECONDS: Final = 0.15
_LONG_SECONDS: Final = 0.5
_TURN_SECONDS: Final = 6.0

#: The ``nice`` value of a query that is no longer short.
_NICE: Final = 10

#: Seconds between two looks at what a query has used, at least.
_LOOK_SECONDS: Final = 0.02


class Yielding:
    """Takes the steps of one process of a tenant, with up to ``threads`` threads. For one thread at a time.

    Each step asks for less than the one before, which needs no privilege.
    """

    def __init__(self, process: QueryProcess, *, tenant: str, threads: int, lanes: Lanes) -> None:
        self._process = process
        self._threads = threads
        self._leave_lane: Callable[[], None] = lambda: lanes.leave(tenant, process)
        self._steps: list[tuple[float, Callable[[], None]]] = [
            (_SHORT_SECONDS, lambda: process.lower_priority(_NICE)),
            (_LONG_SECONDS, lambda: lanes.join(tenant, process)),
            (_TURN_SECONDS, self._end_turn),
        ]
        #: When to look next, by the monotonic clock: before that no step can be due.
        self.look_at = 0.0
        self.look()

    def look(self) -> None:
        """Take the steps that are due."""
        used = self._process.used_seconds()
        while self._steps and used >= self._steps[0][0]:
            self._steps.pop(0)[1]()
        self.look_at = time.monotonic() + self._until_next(used)

    def end(self) -> None:
        """Let others go on. To be called before the process is ended, however it went."""
        self._leave_lane()

    def _end_turn(self) -> None:
        self._process.lower_priority(None)
        self._leave_lane()

    def _until_next(self, used: float) -> float:
        if not self._steps:
            return math.inf
        return max((self._steps[0][0] - used) / self._threads, _LOOK_SECONDS)
