"""Show which queries run, and cancel them, from any process.

A query that still runs after a second gets its audit row then. The canceller sets a mark in Redis, and the
process that runs the query polls for it. Without Redis, queries cannot be cancelled.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.core.cache import cache
from django.db import Error, connection
from redis import RedisError

from logs.models import QueryRun
from logs.sql.protocol import CancelledByStaff, QueryCancelled
from tenantadmin.lib.core.errors import NotFound, ServiceBusy
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from logs.audit import QueryAudit
    from logs.sql.protocol import Cancellation

logger = logging.getLogger(__name__)

#: How often a process looks after the queries that it runs: the longest delay of a cancellation, and how long
#: a query may run without an audit row.
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
    """Looks after the queries that this process runs, in one thread."""

    def __init__(self) -> None:
        self._running: dict[QueryAudit, Cancellation] = {}
        #: The running queries that were cancelled because of a mark.
        self._cancelled: set[QueryAudit] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, audit: QueryAudit, cancellation: Cancellation) -> Iterator[None]:
        """Show the query to staff if the block takes long, and cancel it if it is marked meanwhile.

        Raises:
            CancelledByStaff: raised in place of `QueryCancelled`.
        """
        with self._changed:
            self._running[audit] = cancellation
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="cancel-watch", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        except QueryCancelled:
            if audit in self._cancelled:
                raise CancelledByStaff from None
            raise
        finally:
            with self._changed:
                del self._running[audit]
                self._cancelled.discard(audit)

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._running)
            # Most queries finish before the first look, and cost none.
            time.sleep(POLL_SECONDS)
            try:
                self.look()
            finally:
                connection.close()

    def look(self) -> None:
        """Show the queries that run, and cancel those that are marked."""
        with self._changed:
            running = list(self._running)
        if not running:
            return
        try:
            marks = {
                _mark(run_id): audit for audit in running if (run_id := audit.show_running()) is not None
            }
            marked = cache.get_many(marks)
        except (Error, RedisError) as error:
            logger.warning("Running queries can be neither shown nor cancelled: %s", error)
            return
        with self._changed:
            for audit in {marks[mark] for mark in marked}.intersection(self._running):
                self._cancelled.add(audit)
                self._running[audit].cancel()


#: The watch of this process.
WATCH: Final = CancelWatch()
