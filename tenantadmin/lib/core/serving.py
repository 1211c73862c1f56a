"""What a request may use: a connection that is still open, memory of unread answers, and processor time.

What computes asks `check_work` whether it may go on.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic, sleep, thread_time
from typing import Any, Final

from tenantadmin.lib.core.errors import BadRequest, RequestTimeout

#: Keys of the WSGI environment: the request's `Disconnection`, the `ApiError` to answer if the body did not
#: arrive, the `UnreadBytes` of the process, and the caller, whom Django names.
DISCONNECTION_KEY: Final = "tenantadmin.disconnection"
REFUSAL_KEY: Final = "tenantadmin.refusal"
UNREAD_KEY: Final = "tenantadmin.unread"
CALLER_KEY: Final = "tenantadmin.caller"

#: A request looks so often at what it has used, and whether its caller is gone. Reading the clock of the
#: processor takes a microsecond.
_LOOK_SECONDS: Final = 0.002
#: A request that has used so many seconds is costly. Python runs one thread at a time, so the costly ones
#: of a process compute in turn, from one look to the next.
_COSTLY_SECONDS: Final = 0.01
#: A request that has used so many seconds rests after each look for as long as it computed. It keeps its
#: turn, so that other processes have half of a processor.
_VERY_COSTLY_SECONDS: Final = 0.5
#: How long a request pauses after its turn, so that another thread gets it.
_HANDOVER_SECONDS: Final = 0.0005
#: Nothing waits longer for its turn, because who has it may wait for the database.
_LONGEST_WAIT: Final = 1.0
#: After the arrival of a request, the costly ones pause so long, because most requests are answered by then.
#: No pause is longer than the second figure, however many requests arrive.
_COURTESY_SECONDS: Final = 0.005
_LONGEST_PAUSE: Final = 0.02


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


class TooCostly(BadRequest):
    code = "too_costly"
    message = (
        "This takes more processor time than one request may use. Ask with fewer table names, or use a "
        "ruleset with fewer rules, conditions and patterns."
    )


class CallerGone(RequestTimeout):
    """The caller has closed the connection. Only the access log shows this error."""

    message = "The connection was closed before the answer was ready."


class _Process:
    """What the requests of this process know of each other."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.arrived_at = -math.inf

    def give_way(self) -> None:
        """Pause while requests arrive."""
        latest = monotonic() + _LONGEST_PAUSE
        while (pause := min(self.arrived_at + _COURTESY_SECONDS, latest) - monotonic()) > 0:
            sleep(pause)


_process: Final = _Process()


def note_arrival() -> None:
    """Have costly requests pause for a request that has just arrived."""
    _process.arrived_at = monotonic()


class Work:
    """The processor time that a request uses, in the thread that made this object.

    Args:
        seconds: the most that it may use.
        is_abandoned: tells whether the caller has closed the connection.
    """

    def __init__(
        self, *, seconds: float = math.inf, is_abandoned: Callable[[], bool] = lambda: False
    ) -> None:
        self._seconds = seconds
        self._is_abandoned = is_abandoned
        self._started = thread_time()
        self._used = 0.0
        self._looks_at = -math.inf
        self._has_turn = False

    def has_used(self, seconds: float) -> bool:
        """Return True if the request has used more than ``seconds``, as of its last look."""
        if monotonic() >= self._looks_at:
            self._look()
            self._looks_at = monotonic() + _LOOK_SECONDS
        return self._used > seconds

    def _look(self) -> None:
        self._used = thread_time() - self._started
        if self._is_abandoned():
            raise CallerGone
        if _COSTLY_SECONDS < self._used < self._seconds < math.inf:
            if self._has_turn:
                if self._used > _VERY_COSTLY_SECONDS:
                    sleep(_LOOK_SECONDS)
                self.end_turn()
                sleep(_HANDOVER_SECONDS)
            self._has_turn = _process.turn.acquire(timeout=_LONGEST_WAIT)
            _process.give_way()

    def end_turn(self) -> None:
        """Let another costly request compute."""
        if self._has_turn:
            self._has_turn = False
            _process.turn.release()

    def check(self) -> None:
        """End the request if its time is used up, or if its caller is gone.

        Raises:
            TooCostly, CallerGone
        """
        if self.has_used(self._seconds):
            raise TooCostly


#: Outside of a request, nothing ends.
_work: ContextVar[Work] = ContextVar("work", default=Work())  # noqa: B039  # no deadline


def check_work() -> None:
    """End the current request if its time is used up, or if its caller is gone.

    Code that computes calls it for each rule, test, pattern and value.

    Raises:
        TooCostly, CallerGone
    """
    _work.get().check()


@contextmanager
def working(work: Work) -> Iterator[None]:
    """Make ``work`` the current one in the block."""
    token = _work.set(work)
    try:
        yield
    finally:
        work.end_turn()
        _work.reset(token)
