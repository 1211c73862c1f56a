"""Check several servers at the same time, within a deadline."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from time import monotonic
from typing import Final, Generic, TypeVar

logger = logging.getLogger(__name__)

Name = TypeVar("Name")
Value = TypeVar("Value")

#: Answers are reused for this time, because callers may ask without a limit.
CACHE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """The result of a probe, and how many seconds it took."""

    value: Value
    seconds: float


class Probes(Generic[Name, Value]):
    """Runs probes at the same time, for one caller at a time, and reuses their answers for `CACHE_SECONDS`.

    A probe that fails, or that does not end within the deadline, has no answer. It does not start again
    before it has ended, so one that hangs holds one thread.
    """

    def __init__(self, probes: Mapping[Name, Callable[[], Value]], *, deadline: float) -> None:
        self._probes = probes
        self._deadline = deadline
        self._pool = ThreadPoolExecutor(len(probes), thread_name_prefix="probe")
        self._lock = threading.Lock()
        self._running: dict[Name, Future[Answer[Value] | None]] = {}
        self._answers: Mapping[Name, Answer[Value] | None] = {}
        self._expires_at = 0.0

    def ask(self) -> Mapping[Name, Answer[Value] | None]:
        """Return the answer of each probe, or None, in the order of the probes."""
        with self._lock:
            if monotonic() >= self._expires_at:
                for name, probe in self._probes.items():
                    if name not in self._running:
                        self._running[name] = self._pool.submit(_run, name, probe)
                wait(self._running.values(), timeout=self._deadline)
                self._answers = {name: self._take(name) for name in self._probes}
                self._expires_at = monotonic() + CACHE_SECONDS
            return self._answers

    def _take(self, name: Name) -> Answer[Value] | None:
        return self._running.pop(name).result() if self._running[name].done() else None


def _run(name: object, probe: Callable[[], Value]) -> Answer[Value] | None:
    began_at = monotonic()
    try:
        value = probe()
    except Exception as error:  # noqa: BLE001  # whatever fails, there is no answer
        logger.warning("No answer from %s: %s", name, error)
        return None
    return Answer(value, monotonic() - began_at)
