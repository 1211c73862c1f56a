"""Count the work of each caller. All processes share the count; without Redis nothing is refused.

Contract: Errors (429).
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from contextlib import contextmanager
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

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    if (units := int(seconds * _UNITS_PER_SECOND)) == 0:
        return
    item = _read_limit(budget)
    with _lock:
        _spenders[budget.name, caller] = item.get_expiry()
    try:
        FixedWindowRateLimiter(storage()).hit(item, budget.name, caller, cost=units)
    except (StorageError, RedisError):
        logger.exception("The budget %r cannot be counted", budget.name)


@contextmanager
def on_budget(budget: Budget, *, caller: str) -> Iterator[None]:
    """Refuse a caller who has used up a budget, and count the time of the block.

    Raises:
        RateLimited: as `require_budget`; or this process works on many requests of the caller already.
    """
    require_budget(budget, caller=caller)
    with _place(budget, caller=caller):
        started = budget.clock()
        try:
            yield
        finally:
            use_budget(budget, caller=caller, seconds=budget.clock() - started)


@contextmanager
def _place(budget: Budget, *, caller: str) -> Iterator[None]:
    """Take one of the places that a caller has in this process."""
    if budget.places is None:
        yield
        return
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
