"""Celery does the work of a queue: a task for each row that is taken."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tenantadmin.lib.core.queues import queue_length
from tenantadmin.lib.database.locks import Busy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from celery.canvas import Signature

    from tenantadmin.lib.jobs.queue import Queue, RowT

logger = logging.getLogger(__name__)


def start_due(
    queue: Queue[RowT], *, broker_queue: str, room: int, make_task: Callable[[RowT], Signature[Any]]
) -> None:
    """Send a task for each row whose turn it is, until ``room`` tasks wait in the broker's queue.

    Rows with the same task share it. If it expires, its rows are due again.
    """
    rows = queue.take(limit=room - queue_length(broker_queue))
    tasks = {(it.task, *it.args): it for it in map(make_task, rows)}
    for task in tasks.values():
        task.apply_async(expires=queue.lease.total_seconds())


@contextmanager
def attempt(what: str, *, tenant: object) -> Iterator[None]:
    """Do a job in the block. If another worker does it, do nothing; its row is due again.

    Raises:
        Exception: it failed. The log has the tenant and the reason.
    """
    try:
        yield
    except Busy as reason:
        logger.info("%s of tenant %s waits: %s", what, tenant, reason)
    except Exception as error:
        logger.error("%s of tenant %s failed, and is tried again: %s", what, tenant, error)  # noqa: TRY400
        raise
