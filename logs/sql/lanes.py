"""A tenant's long queries run one after the other, so that the first of them end instead of none.

Pure: threads and nothing else.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable


class Pausable(Protocol):
    """What runs in a lane."""

    def pause(self) -> None:
        """Stop until `resume`."""

    def resume(self) -> None:
        """Go on."""


class Lanes:
    """Of an owner's runners that joined, the first ``width`` run; the others are paused until their turn."""

    def __init__(self, *, width: int) -> None:
        self._width = width
        self._lock = threading.Lock()
        self._joined: dict[Hashable, list[Pausable]] = {}

    def join(self, owner: Hashable, runner: Pausable) -> None:
        """Have ``runner``, which runs and has not joined, run only when it is its turn."""
        with self._lock:
            joined = self._joined.setdefault(owner, [])
            joined.append(runner)
            if len(joined) > self._width:
                runner.pause()

    def leave(self, owner: Hashable, runner: Pausable) -> None:
        """Let ``runner`` go, running, and the next one take its turn. Without effect where it has not joined.

        Nothing is asked of it afterwards.
        """
        with self._lock:
            joined = self._joined.get(owner, [])
            if runner not in joined:
                return
            place = joined.index(runner)
            del joined[place]
            if place >= self._width:
                runner.resume()
            elif len(joined) >= self._width:
                joined[self._width - 1].resume()
            if not joined:
                del self._joined[owner]
