"""What the web server passes to Django beyond WSGI, and memory that goes back to the system.

By default, glibc keeps what was freed: each free of a large block raises, up to 32 MiB, the size from which
it would give blocks back at once, and each of many heaps keeps twice that. The allocator that pyarrow brings
keeps what it once used: a worker that built a growing day 1,800 times kept 120 MiB, although pyarrow
never needed more than 20 MiB at once.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: Keys of the WSGI environment: the request's `Disconnection`, the `ApiError` to answer if the body did not
#: arrive, the `UnreadBytes` of the process, and the caller, whom Django names.
DISCONNECTION_KEY: Final = "tenantadmin.disconnection"


REFUSAL_KEY: Final = "tenantadmin.refusal"


UNREAD_KEY: Final = "tenantadmin.unread"


CALLER_KEY: Final = "tenantadmin.caller"


class Disconnection:
    """Tells whether the caller of one request has closed the connection.

    Args:
        watch: begins to watch the connection. Most requests end before anything asks.
    """

    def __init__(self, watch: Callable[[], object] = lambda: None) -> None:
        self._watch: Callable[[], object] | None = watch
        self._lock = threading.Lock()
        self._happened = False
        self._callback: Callable[[], None] | None = None

    def happened(self) -> bool:
        self._begin()
        return self._happened

    def _begin(self) -> None:
        watch, self._watch = self._watch, None
        if watch:
            watch()

    def forget(self) -> None:
        """Forget how to watch. The connection closes only when nothing refers to it."""
        self._watch = None

    def set(self) -> None:
        """Record that the caller has disconnected, and call the function of `calling`."""
        with self._lock:
            self._happened = True
            if self._callback:
                self._callback()

    @contextmanager
    def calling(self, function: Callable[[], None]) -> Iterator[None]:
        """Call ``function`` if the caller disconnects during the block, or did so before.

        Any thread may call it, and it must return at once. It is not called after the block.
        """
        self._begin()
        with self._lock:
            self._callback = function
            if self._happened:
                function()
        try:
            yield
        finally:
            with self._lock:
                self._callback = None


def disconnection_of(environ: Mapping[str, Any]) -> Disconnection:
    """Return the `Disconnection` of a request. If the server does not watch, it never happens."""
    disconnection = environ.get(DISCONNECTION_KEY)
    return disconnection if isinstance(disconnection, Disconnection) else Disconnection()


class UnreadBytes:
    """Counts the bytes that a process keeps for answers which their callers have not read.

    Any thread may use it.

    Args:
        per_caller, total: how many bytes are kept for one caller, and for all.
    """

    def __init__(self, *, per_caller: int, total: int) -> None:
        self._per_caller = per_caller
        self._total = total
        self._lock = threading.Lock()
        self._kept: Counter[str] = Counter()

    def take(self, caller: str, size: int) -> bool:
        """Count ``size`` bytes more. Return False if that would be too many."""
        with self._lock:
            if self._kept[caller] + size > self._per_caller or self._kept.total() + size > self._total:
                return False
            self._kept[caller] += size
            return True

    def give_back(self, caller: str, size: int) -> None:
        """Count ``size`` bytes less."""
        with self._lock:
            self._kept[caller] -= size
            if not self._kept[caller]:
                del self._kept[caller]

    def of(self, caller: str) -> int:
        """Return how many bytes are kept for a caller."""
        with self._lock:
            return self._kept.get(caller, 0)


def unread_bytes_of(environ: Mapping[str, Any], caller: str) -> int:
    """Return how many bytes of answers the caller has not read. A server that does not count says 0."""
    unread = environ.get(UNREAD_KEY)
    return unread.of(caller) if isinstance(unread, UnreadBytes) else 0


#: Parameters of ``mallopt`` (malloc.h).
_TRIM_THRESHOLD: Final = -1


_MMAP_THRESHOLD: Final = -3


_ARENAS: Final = -8


def give_memory_back() -> None:
    """Have glibc and pyarrow give freed memory back from now on. Without glibc, only pyarrow does.

    Blocks of 256 KiB are given back at once, and at most 4 heaps keep at most 4 MiB each.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 256 << 10)
        mallopt(_TRIM_THRESHOLD, 4 << 20)
        mallopt(_ARENAS, 4)
