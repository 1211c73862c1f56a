"""File locks. The kernel releases them when the process that holds them dies."""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from typing import TYPE_CHECKING

from tenantadmin.run.embedded.errors import EmbeddedError

if TYPE_CHECKING:
    from pathlib import Path

_POLL_SECONDS = 0.02
_open_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """A `flock` on one file. Separate objects exclude each other even inside one process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        _open_locks.add(self)

    def acquire(self, *, shared: bool = False, timeout: float) -> None:
        """Take the lock. Raises EmbeddedError if another process holds it for `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while not self.try_acquire(shared=shared):
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"Another process has held the lock {self._path} for {timeout:.0f} seconds. "
                    "Wait until it ends, or end it, and try again."
                )
            time.sleep(_POLL_SECONDS)

    def try_acquire(self, *, shared: bool = False) -> bool:
        """Take the lock if it is free. Return False if it is not."""
        fd = self._open()
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            return False
        return True

    def wait(self) -> None:
        """Block until no process holds the lock exclusively."""
        fcntl.flock(self._open(), fcntl.LOCK_SH)
        self.release()

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def fileno(self) -> int:
        """Return the descriptor. A child process that inherits it holds the lock, too."""
        return self._open()

    def _open(self) -> int:
        if self._fd is None:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._fd


def _close_inherited_locks() -> None:
    """Close inherited locks in a forked child, as they would stay locked after the parent's death."""
    for lock in list(_open_locks):
        lock.release()


os.register_at_fork(after_in_child=_close_inherited_locks)
