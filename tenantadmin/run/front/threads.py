"""Threads for an event loop. `ThreadPoolExecutor` takes 30 µs more of each request: decision 4."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Runs a function, and returns how to tell the event loop of its result.
    Job = Callable[[], Callable[[], object]]

T = TypeVar("T")


class Threads:
    """Runs functions in at most ``count`` threads. A thread starts when all others are busy, and stays.

    The thread that became idle last takes the next function: its database connection and memory are in the
    caches still.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._started = 0
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._idle: list[SimpleQueue[Job]] = []

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Return the result of ``function()`` as a future of the running event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def job() -> Callable[[], object]:
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001 - raised where the future is awaited
                return partial(loop.call_soon_threadsafe, _fail, future, error)
            return partial(loop.call_soon_threadsafe, _finish, future, result)

        with self._lock:
            if self._idle:
                self._idle.pop().put(job)
            elif self._started < self._count:
                self._started += 1
                name = f"request-{self._started}"
                threading.Thread(target=self._work, args=(job,), name=name, daemon=True).start()
            else:
                self._waiting.append(job)
        return future

    def _work(self, job: Job) -> None:
        own: SimpleQueue[Job] = SimpleQueue()
        while True:
            tell = job()
            with self._lock:
                following = self._waiting.popleft() if self._waiting else None
                if following is None:
                    self._idle.append(own)
            # The thread is idle before the loop hears of the result: the client's next request can have it.
            tell()
            # Nothing of the request may live while the thread waits for the next one.
            del job, tell
            job = following or own.get()


def _finish(future: asyncio.Future[T], result: T) -> None:
    if not future.cancelled():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.cancelled():
        future.set_exception(error)
