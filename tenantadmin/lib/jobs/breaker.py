"""Which receivers have not answered lately. They get one attempt at a time, and rest between two.

The state is in the cache, for all workers. Without it, every receiver counts as well.
"""

from __future__ import annotations

import hashlib
import time
from typing import Final

from django.core.cache import cache
from redis import RedisError

#: The rest after the first failure. It doubles with each, up to the longest.
_FIRST_REST: Final = 10.0
_LONGEST_REST: Final = 60.0
#: Without an attempt, a failure is forgotten after this time.
_FORGET_SECONDS: Final = 3_600


def seconds_to_rest(receiver: str) -> float | None:
    """Return how long a receiver must still rest; None if its last attempt was answered."""
    try:
        state = cache.get(_key(receiver))
    except RedisError:
        return None
    return None if state is None else min(max(state[1] - time.time(), 0.0), _LONGEST_REST)


def note(receiver: str, *, has_answered: bool) -> None:
    """Note whether a receiver answered. An answer that refuses the message is one too."""
    key = _key(receiver)
    try:
        if has_answered:
            cache.delete(key)
            return
        failures = (cache.get(key) or [0])[0] + 1
        rest = min(_FIRST_REST * 2 ** min(failures - 1, 10), _LONGEST_REST)
        cache.set(key, [failures, time.time() + rest], timeout=_FORGET_SECONDS)
    except RedisError:
        pass


def _key(receiver: str) -> str:
    return f"receiver:{hashlib.blake2b(receiver.encode(), digest_size=16).hexdigest()}"
