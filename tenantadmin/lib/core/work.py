"""The deadline of a request: what computes asks `check_work` whether it may go on."""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from time import sleep, thread_time
from typing import TYPE_CHECKING, Final

from tenantadmin.lib.core.errors import BadRequest, RequestTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Reading the clock takes microseconds.
_QUESTIONS_PER_READING: Final = 20
#: A request that has used so many seconds is costly. The costly ones of a process compute in turn. Each turn
#: ends with a pause as long as it computed, at most so many seconds. Otherwise, all other requests of the
#: process would wait: Python runs one thread at a time.
_COSTLY_SECONDS: Final = 0.1
_LONGEST_PAUSE: Final = 0.05
#: In which another thread gets the turn.
_HANDOVER_SECONDS: Final = 0.0005
#: Nothing waits longer for its turn, because who has it may wait for the database.
_LONGEST_WAIT: Final = 1.0
_turn: Final = Lock()


class TooCostly(BadRequest):
    code = "too_costly"
    message = (
        "This takes more processor time than one request may use. Ask with fewer table names, or use a "
        "ruleset with fewer rules, conditions and patterns."
    )


class CallerGone(RequestTimeout):
    """The caller has closed the connection. Only the access log shows this error."""

    message = "The connection was closed before the answer was ready."


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
        self._questions = 0
        self._has_turn = False

    def has_used(self, seconds: float) -> bool:
        """Return True if the request has used more than ``seconds``.

        The clock is read only at every `_QUESTIONS_PER_READING`th call, because a reading is slow.
        """
        if self._questions % _QUESTIONS_PER_READING == 0:
            before, self._used = self._used, thread_time() - self._started
            if self._is_abandoned():
                raise CallerGone
            if _COSTLY_SECONDS < self._used < self._seconds < math.inf:
                if self._has_turn:
                    sleep(min(self._used - before, _LONGEST_PAUSE))
                    self.end_turn()
                    sleep(_HANDOVER_SECONDS)
                self._has_turn = _turn.acquire(timeout=_LONGEST_WAIT)
        self._questions += 1
        return self._used > seconds

    def end_turn(self) -> None:
        """Let another costly request compute."""
        if self._has_turn:
            self._has_turn = False
            _turn.release()

    def check(self) -> None:
        """End the request if its time is used up, or if its caller is gone.

        Raises:
            TooCostly, CallerGone
        """
        if self.has_used(self._seconds):
            raise TooCostly


#: Outside of a request, nothing ends.
_work: ContextVar[Work] = ContextVar("work", default=Work())  # noqa: B039  # no deadline


def current_work() -> Work:
    """Return the work of the current request."""
    return _work.get()


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
