"""Threads for an event loop. `ThreadPoolExecutor` takes 30 µs more of each request: decision 4."""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Threads:
    """Runs functions in at most ``count`` threads. A thread starts when all others are busy, and stays."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        # Only the thread of the event loop changes these.
        self._started = 0
        self._unfinished = 0

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Return the result of ``function()`` as a future of the running event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001 - raised where the future is awaited
                loop.call_soon_threadsafe(self._fail, future, error)
            else:
                loop.call_soon_threadsafe(self._finish, future, result)

        self._unfinished += 1
        if self._started < min(self._unfinished, self._count):
            self._started += 1
            threading.Thread(target=self._work, name=f"request-{self._started}", daemon=True).start()
        self._queue.put(run)
        return future

    def _work(self) -> None:
        while True:
            self._queue.get()()

    def _finish(self, future: asyncio.Future[T], result: T) -> None:
        self._unfinished -= 1
        if not future.cancelled():
            future.set_result(result)

    def _fail(self, future: asyncio.Future[T], error: BaseException) -> None:
        self._unfinished -= 1
        if not future.cancelled():
            future.set_exception(error)
