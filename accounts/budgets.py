"""Count the expensive work of each caller. All processes share the count; without Redis nothing is refused.

Contract: Errors (429).
"""

from __future__ import annotations

import logging
import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import limits
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


def require_budget(budget: Budget, *, caller: str) -> None:
    """Refuse a caller who has used up a budget.

    Raises:
        RateLimited: ``Retry-After`` says in how many seconds the caller has a budget again.
    """
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
    try:
        FixedWindowRateLimiter(storage()).hit(_read_limit(budget), budget.name, caller, cost=units)
    except (StorageError, RedisError):
        logger.exception("The budget %r cannot be counted", budget.name)


@contextmanager
def on_budget(budget: Budget, *, caller: str) -> Iterator[None]:
    """Refuse a caller who has used up a budget, and count the time of the block.

    Raises:
        RateLimited: as `require_budget`.
    """
    require_budget(budget, caller=caller)
    started = budget.clock()
    try:
        yield
    finally:
        use_budget(budget, caller=caller, seconds=budget.clock() - started)


def _read_limit(budget: Budget) -> limits.RateLimitItem:
    """Return the limit of a budget in units."""
    item = limits.parse(settings.CALLER_BUDGETS[budget.name])
    return type(item)(item.amount * _UNITS_PER_SECOND, item.multiples)
