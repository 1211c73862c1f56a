"""Count the work of each caller. All processes share the count; without Redis nothing is refused.

Contract: Errors (429).
"""

from __future__ import annotations

import logging
import math
import time
import weakref
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

import limits
from cachetools import TLRUCache
from django.conf import settings
from limits.errors import StorageError
from limits.strategies import FixedWindowRateLimiter
from redis import RedisError

from accounts.limits import storage
from tenantadmin.lib.core.errors import RateLimited
from tenantadmin.lib.http.budgets import BYTES_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import ExitStack

    from tenantadmin.lib.http.budgets import Budget

logger = logging.getLogger(__name__)
#: Work is counted in tenths of a second. What takes less is free.
_UNITS_PER_SECOND: Final = 10

#: Protects the state of this process below.
_lock: Final = Lock()
#: Budgets and callers that had requests which count, with the seconds for which that matters.
_spenders: Final[TLRUCache[tuple[str, str], float]] = TLRUCache(
    maxsize=10_000, ttu=lambda _key, seconds, now: now + seconds
)
#: How many requests of a caller run.
_running: Final[Counter[tuple[str, str]]] = Counter()


def require_budget(budget: Budget, *, caller: str) -> None:
    """Refuse a caller who has used up a budget.

    Raises:
        RateLimited: ``Retry-After`` says in how many seconds the caller has a budget again.
    """
    if budget.is_cheap:
        with _lock:
            if (budget.name, caller) not in _spenders:
                return
    item, limiter = _read_limit(budget), FixedWindowRateLimiter(storage())
    try:
        if limiter.test(item, budget.name, caller):
            return
        resets_at = limiter.get_window_stats(item, budget.name, caller).reset_time
    except (StorageError, RedisError):
        logger.exception("The budget %r cannot be read", budget.name)
        return
    raise RateLimited(
        "You have used up the time for this kind of request. Try again later.",
        retry_after=max(1, math.ceil(resets_at - time.time())),
    )


def use_budget(budget: Budget, *, caller: str, seconds: float) -> None:
    """Count the time that a request of ``caller`` took."""
    if (units := int(seconds * _UNITS_PER_SECOND)) <= 0:
        return
    item = _read_limit(budget)
    with _lock:
        _spenders[budget.name, caller] = item.get_expiry()
    try:
        FixedWindowRateLimiter(storage()).hit(item, budget.name, caller, cost=units)
    except (StorageError, RedisError):
        logger.exception("The budget %r cannot be counted", budget.name)


@dataclass(slots=True)
class Cost:
    """What a request costs besides its time: the bytes of its streamed answer."""

    sent_bytes: int = 0


class MeteredPieces:
    """The pieces of a streamed answer, whose bytes are counted.

    Args:
        ended: is closed when the answer is made or given up.
    """

    def __init__(self, pieces: Iterable[bytes], cost: Cost, *, ended: ExitStack) -> None:
        self._pieces = iter(pieces)
        self._cost = cost
        #: Django calls it. If a response is dropped unsent, the garbage collector does.
        self.close = weakref.finalize(self, ended.close)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self._cost.sent_bytes += len(piece)
        return piece


@contextmanager
def on_budget(budget: Budget, *, caller: str, unread: int = 0) -> Iterator[Cost]:
    """Refuse a caller who has used up a budget, and count what the block costs.

    ``unread`` is how many bytes of earlier answers the caller has not read.

    Raises:
        RateLimited: as `require_budget`; or this process works on many requests of the caller already, or
            keeps many bytes for it.
    """
    if unread >= budget.unread_bytes:
        raise RateLimited("Read the answers to your earlier requests first.", retry_after=1)
    require_budget(budget, caller=caller)
    with _place(budget, caller=caller):
        started, cost = budget.clock(), Cost()
        try:
            yield cost
        finally:
            seconds = budget.clock() - started + cost.sent_bytes / BYTES_PER_SECOND
            use_budget(budget, caller=caller, seconds=seconds)


@contextmanager
def _place(budget: Budget, *, caller: str) -> Iterator[None]:
    """Take one of the places that a caller has in this process."""
    key = budget.name, caller
    with _lock:
        if _running[key] >= budget.places:
            raise RateLimited(
                f"{budget.places} of your requests of this kind are still at work. Wait for their answers.",
                retry_after=1,
            )
        _running[key] += 1
    try:
        yield
    finally:
        with _lock:
            _running[key] -= 1
            if not _running[key]:
                del _running[key]


def _read_limit(budget: Budget) -> limits.RateLimitItem:
    """Return the limit of a budget in units."""
    item = limits.parse(settings.CALLER_BUDGETS[budget.name])
    return type(item)(item.amount * _UNITS_PER_SECOND, item.multiples)
