"""File locks that the kernel releases when their holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from typing import TYPE_CHECKING

from tenantadmin.embedded.errors import EmbeddedError

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
        """Take the lock. Raises EmbeddedError when somebody else holds it for `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while not self.try_acquire(shared=shared):
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"Another process has been holding {self._path} for {timeout:.0f} seconds. "
                    "Wait for it to end, or end it, and try again."
                )
            time.sleep(_POLL_SECONDS)

    def try_acquire(self, *, shared: bool = False) -> bool:
        """Take the lock if it is free now, and say whether it was."""
        fd = self._open()
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            return False
        return True

    def wait(self) -> None:
        """Block until nobody holds the lock exclusively."""
        fcntl.flock(self._open(), fcntl.LOCK_SH)
        self.release()

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def fileno(self) -> int:
        """Return the descriptor to hand to a child, which then holds the lock too."""
        return self._open()

    def _open(self) -> int:
        if self._fd is None:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._fd


def _forget_inherited_locks() -> None:
    """A forked child shares its parent's descriptors, and would keep the lock beyond the parent's death."""
    for lock in list(_open_locks):
        lock.release()


os.register_at_fork(after_in_child=_forget_inherited_locks)
