"""Budgets: limits on the time that one caller's expensive requests may take. Contract: Errors (429)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Budget:
    """A kind of expensive work. Its limit is the setting ``CALLER_BUDGETS[name]``, in seconds per period.

    ``clock`` measures a request: the processor time of this thread, or elapsed time if the work is elsewhere.
    """

    name: str
    clock: Callable[[], float]


LINT: Final = Budget("lint", time.thread_time)
QUERY: Final = Budget("query", time.monotonic)
