"""Cancel a running query from another thread. Imports no Django."""

from __future__ import annotations

import os
import threading
import weakref


class Cancellation:
    """Cancels a query from another thread."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0, os.EFD_CLOEXEC)
        self._cancelled = threading.Event()
        # Close the descriptor only when no thread can wait for it any more.
        weakref.finalize(self, os.close, self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def cancel(self) -> None:
        """End the query that has this object, if it still runs."""
        self._cancelled.set()
        os.eventfd_write(self._descriptor, 1)

    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()
