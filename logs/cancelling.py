"""Cancel a running query from any process.

The canceller sets a mark in Redis, and the process that runs the query polls for it. Without Redis, queries
cannot be cancelled.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.core.cache import cache
from redis import RedisError

from logs.models import QueryRun
from logs.sql.protocol import CancelledByStaff, QueryCancelled
from tenantadmin.lib.core.errors import NotFound, ServiceBusy
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from logs.sql.protocol import Cancellation

logger = logging.getLogger(__name__)

#: How often a process polls for marks while it runs queries, and so the longest delay of a cancellation.
POLL_SECONDS: Final = 1.0
#: Longer than any query may take. An older row that is still "running" belongs to a process that was killed.
_LONGEST: Final = timedelta(minutes=5)


class QueryNotRunning(NotFound):
    message = "The query has ended."


def is_running(run: QueryRun) -> bool:
    """Return True unless the query had ended when ``run`` was read, or its process was killed."""
    return run.outcome == "running" and run.at >= now() - _LONGEST


def cancel_query(tenant_id: UUID, run_id: int) -> QueryRun:
    """Mark a query to be cancelled. Its process ends it within `POLL_SECONDS`.

    Raises:
        QueryNotRunning: the tenant has no such running query.
        ServiceBusy: Redis does not answer.
    """
    run = QueryRun.objects.filter(tenant_id=tenant_id, pk=run_id).first()
    if run is None or not is_running(run):
        raise QueryNotRunning
    try:
        cache.set(_mark(run_id), 1, timeout=_LONGEST.total_seconds())
    except RedisError as error:
        raise ServiceBusy from error
    return run


def _mark(run_id: int) -> str:
    return f"queries:cancel:{run_id}"


class CancelWatch:
    """Polls for the marks of the queries that this process runs, in one thread."""

    def __init__(self) -> None:
        self._running: dict[int, Cancellation] = {}
        #: The running queries that were cancelled because of a mark.
        self._cancelled: set[int] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, run_id: int, cancellation: Cancellation) -> Iterator[None]:
        """Cancel the query if it is marked while the block runs.

        Raises:
            CancelledByStaff: raised in place of `QueryCancelled`.
        """
        with self._changed:
            self._running[run_id] = cancellation
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="cancel-watch", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        except QueryCancelled:
            if run_id in self._cancelled:
                raise CancelledByStaff from None
            raise
        finally:
            with self._changed:
                del self._running[run_id]
                self._cancelled.discard(run_id)

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._running)
            # Most queries finish before the first poll and cost no Redis call.
            time.sleep(POLL_SECONDS)
            self.look()

    def look(self) -> None:
        """Cancel the queries that are marked."""
        with self._changed:
            running = list(self._running)
        if not running:
            return
        try:
            marked = cache.get_many([_mark(run_id) for run_id in running])
        except RedisError as error:
            logger.warning("Marks of queries to cancel cannot be read: %s", error)
            return
        with self._changed:
            for run_id in [run_id for run_id in self._running if _mark(run_id) in marked]:
                self._cancelled.add(run_id)
                self._running[run_id].cancel()


#: The watch of this process.
WATCH: Final = CancelWatch()
