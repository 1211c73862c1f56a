"""Run replays, searches for recommendations and measurements of effects at a low priority."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")

#: Added to the nice value. Without it, queries take 1.8 times as long while a replay runs.
NICENESS: Final = 10


def run_at_low_priority(work: Callable[[], _T], *, stop: Callable[[], None]) -> _T:
    """Run ``work`` in a thread with a lower scheduling priority (nice 10).

    On Linux each thread has its own priority, and a worker could not raise its priority again. The thread has
    another database connection, so it does not see the caller's open transaction.

    Args:
        stop: called if the worker must end. It makes the work end soon.
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
