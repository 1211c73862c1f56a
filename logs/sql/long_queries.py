"""Run the long queries of a tenant one after another. In parallel, all of them could time out.

Imports no Django.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable


class Pausable(Protocol):
    """A running query."""

    def pause(self) -> None:
        """Stop until `resume`."""

    def resume(self) -> None:
        """Continue."""


class LongQueryQueues:
    """A queue of long queries for each tenant. The first ``width`` of a queue run, the others are paused."""

    def __init__(self, *, width: int) -> None:
        self._width = width
        self._lock = threading.Lock()
        self._queues: dict[Hashable, list[Pausable]] = {}

    def add(self, tenant: Hashable, query: Pausable) -> None:
        """Append a running query to its tenant's queue, and pause it if it must wait."""
        with self._lock:
            queue = self._queues.setdefault(tenant, [])
            queue.append(query)
            if len(queue) > self._width:
                query.pause()

    def remove(self, tenant: Hashable, query: Pausable) -> None:
        """Remove a query and let it run, and resume the next one. A query that was not added is ignored.

        The queue does not call the query's methods afterwards.
        """
        with self._lock:
            queue = self._queues.get(tenant, [])
            if query not in queue:
                return
            index = queue.index(query)
            del queue[index]
            if index >= self._width:
                query.resume()
            elif len(queue) >= self._width:
                queue[self._width - 1].resume()
            if not queue:
                del self._queues[tenant]
