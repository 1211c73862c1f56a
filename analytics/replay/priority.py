"""Work at a low priority: a replay, a search for recommendations, or a measurement of their effects."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")

#: How much lower the priority is: without it, queries beside a replay take 1.8 times as long.
NICENESS: Final = 10


def run_at_low_priority(work: Callable[[], _T], *, stop: Callable[[], None]) -> _T:
    """Run ``work`` in a thread to which the machine gives time when queries and builds need none.

    On Linux, a priority is that of a thread, and a worker could not raise its own again. The thread has a
    database connection of its own, so it does not see what the caller has not committed.

    Args:
        stop: called if the worker must end meanwhile. It makes the work end soon.
    """
    with ThreadPoolExecutor(1, initializer=os.nice, initargs=(NICENESS,)) as pool:
        execution = pool.submit(_run, work)
        try:
            return execution.result()
        except (KeyboardInterrupt, SystemExit):
            stop()
            raise


def _run(work: Callable[[], _T]) -> _T:
    try:
        return work()
    finally:
        connection.close()
