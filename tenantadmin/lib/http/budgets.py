"""Budgets: limits on what the requests of one caller cost. Contract: Errors (429).

Every operation has one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

#: Bytes of unread answers in the files of one process. From the first figure on, the requests of a caller are
#: refused, but those under way may add more. From the second (for one caller) or the third (for all), a
#: thread waits for its reader.
UNREAD_BYTES: Final = 64 << 20
MOST_UNREAD_BYTES: Final = 256 << 20
ALL_UNREAD_BYTES: Final = 1 << 30
#: So many bytes of a streamed answer cost as much as a second.
BYTES_PER_SECOND: Final = 50 << 20


@dataclass(frozen=True, slots=True)
class Budget:
    """A kind of work. Its limit is the setting ``CALLER_BUDGETS[name]``, in seconds per period. It is
    counted for the caller, and with a larger limit for the client's network.

    Attributes:
        clock: measures a request: processor time of this thread, or elapsed time if the work is elsewhere.
        places: how many requests of a caller one process works on at a time, until their answers are made.
        unread_bytes: a caller who has not read so much of earlier answers is refused.
    """

    name: str
    clock: Callable[[], float]
    places: int
    unread_bytes: int = UNREAD_BYTES


#: Of every operation that declares no other.
REQUEST: Final = Budget("request", time.thread_time, places=12)
#: Of operations that check, compare or explain rules.
LINT: Final = Budget("lint", time.thread_time, places=4)
QUERY: Final = Budget("query", time.monotonic, places=10)
