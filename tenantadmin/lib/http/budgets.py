"""Budgets: limits on the time that the requests of one caller may take. Contract: Errors (429).

Every operation has one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Budget:
    """A kind of work. Its limit is the setting ``CALLER_BUDGETS[name]``, in seconds per period.

    Attributes:
        clock: measures a request: processor time of this thread, or elapsed time if the work is elsewhere.
        places: how many requests of a caller one process works on at a time. None: any number.
        is_cheap: most requests take less than what counts, so Redis is asked only about callers with others.
    """

    name: str
    clock: Callable[[], float]
    places: int | None = None
    is_cheap: bool = False


#: Of every operation that declares no other.
REQUEST: Final = Budget("request", time.thread_time, is_cheap=True)
#: Of operations that check, compare or explain rules.
LINT: Final = Budget("lint", time.thread_time, places=4)
QUERY: Final = Budget("query", time.monotonic)
