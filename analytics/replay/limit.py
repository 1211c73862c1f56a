"""End work on an engine: it takes too long, it is not needed any more, or its worker must end."""

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

#: Seconds between two checks whether the work must end.
LOOK_SECONDS: Final = 1.0


class Limit:
    """Ends the work inside `on` after a time, for a reason that ``find_reason`` returns, or on `stop`."""

    def __init__(self, *, seconds: float, message: str, find_reason: Callable[[], str] = str) -> None:
        """Set the limit.

        Args:
            seconds: the most time that the work may take.
            message: the error after that time.
            find_reason: called each second in another thread. It returns the reason to end the work, or an
                empty text.
        """
        self._seconds, self._message, self._find_reason = seconds, message, find_reason
        self._reason = ""
        self._engine: duckdb.DuckDBPyConnection | None = None

    def stop(self, reason: str = "The worker ends.") -> None:
        """End the work. Any thread may call this."""
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
            ReplayEnded: the work must end.
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
        """Check until the work ends. An interrupt between two statements has no effect, so it is repeated."""
        deadline = time.monotonic() + self._seconds
        try:
            while not ended.wait(min(LOOK_SECONDS, self._seconds)):
                late = time.monotonic() >= deadline
                if reason := self._reason or (self._message if late else self._find_reason()):
                    self.stop(reason)
        finally:
            connection.close()
