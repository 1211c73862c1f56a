"""End work on an engine that takes too long, that nobody needs any more, or whose worker must end."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import duckdb
from django.db import connection

from analytics.replay.errors import ReplayEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds between two looks whether running work must end.
LOOK_SECONDS: Final = 1.0


class Limit:
    """Ends the work inside `on` after a time, when a reason is found, or when it is told to."""

    def __init__(self, *, seconds: float, message: str, find_reason: Callable[[], str] = str) -> None:
        """Set the limit.

        Args:
            seconds: how long the work may take.
            message: the error when the time is over.
            find_reason: called each second in another thread. It returns why the work must end, or an empty
                text.
        """
        self._seconds, self._message, self._find_reason = seconds, message, find_reason
        self._reason = ""
        self._engine: duckdb.DuckDBPyConnection | None = None

    def stop(self, reason: str = "The worker ends.") -> None:
        """End the work. Any thread may call it."""
        self._reason = self._reason or reason
        if self._engine is not None:
            self._engine.interrupt()

    def check(self) -> None:
        """Raise ReplayEnded if the work must end."""
        if self._reason:
            raise ReplayEnded(self._reason)

    @contextmanager
    def on(self, engine: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Limit the work inside the `with` block.

        Raises:
            ReplayEnded: it must end.
        """
        self._engine = engine
        ended = threading.Event()
        thread = threading.Thread(target=self._watch, args=[ended], name="limit", daemon=True)
        thread.start()
        try:
            self.check()
            yield
            self.check()
        except duckdb.InterruptException:
            self.check()
            raise
        finally:
            ended.set()
            thread.join()
            self._engine = None

    def _watch(self, ended: threading.Event) -> None:
        """Look until the work has ended. An interruption between two statements is lost, so repeat it."""
        deadline = time.monotonic() + self._seconds
        try:
            while not ended.wait(min(LOOK_SECONDS, self._seconds)):
                late = time.monotonic() >= deadline
                if reason := self._reason or (self._message if late else self._find_reason()):
                    self.stop(reason)
        finally:
            connection.close()
