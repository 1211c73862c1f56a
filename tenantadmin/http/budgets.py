"""Budgets: how much expensive work of one kind a caller may ask for in a time. Contract: Errors (429)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Budget:
    """A kind of expensive work. Its limit is the setting ``CALLER_BUDGETS[name]``, in seconds per time.

    ``clock`` measures an operation: processor time of this process, or the time that it takes elsewhere.
    """

    name: str
    clock: Callable[[], float]


LINT: Final = Budget("lint", time.thread_time)
QUERY: Final = Budget("query", time.monotonic)
