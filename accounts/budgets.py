"""Count the work of each caller and each client network. Without Redis nothing is refused.

Work is counted in milliseconds. A process adds up what a caller costs and tells Redis, which all processes
share, whenever that is a tenth of a second. Redis answers with what all processes have counted, so most
requests need no round trip. Until a process has told Redis, it goes on for a caller that has nothing left:
for a tenth of a second of work, and the requests that run meanwhile.

Contract: Errors (429).
"""

from __future__ import annotations

import logging
import math
import time
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

import limits
from cachetools import LRUCache, TLRUCache
from django.conf import settings
from limits.errors import StorageError
from limits.strategies import FixedWindowRateLimiter
from redis import RedisError

from accounts.limits import storage
from tenantadmin.lib.core.errors import RateLimited
from tenantadmin.lib.http.budgets import BYTES_PER_SECOND

if TYPE_CHECKING:
    from tenantadmin.lib.http.budgets import Budget

logger = logging.getLogger(__name__)
_UNITS_PER_SECOND: Final = 1000
#: Each request costs at least this: what reads and writes it is in no clock.
FLOOR_SECONDS: Final = 0.002
#: A process keeps less than this of a caller to itself.
_TOLD_UNITS: Final = 100

#: Protects the state of this process below.
_lock: Final = Lock()
#: Budgets and callers that had used up all when this process last told Redis, with the seconds that are left.
_spenders: Final[TLRUCache[tuple[str, str], float]] = TLRUCache(
    maxsize=10_000, ttu=lambda _key, seconds, now: now + seconds
)
#: What was not yet told to Redis, in milliseconds.
_untold: Final[LRUCache[tuple[str, str], float]] = LRUCache(maxsize=10_000)
#: How many requests of a caller run.
_running: Final[Counter[tuple[str, str]]] = Counter()


def require_budget(budget: Budget, *, caller: str, network: str = "") -> None:
    """Refuse a caller who has used up a budget, or whose client network has.

    Raises:
        RateLimited: ``Retry-After`` says in how many seconds there is a budget again.
    """
    for item, key in _keys(budget, caller=caller, network=network):
        _require_left(budget, item, key)


def _require_left(budget: Budget, item: limits.RateLimitItem, key: str) -> None:
    with _lock:
        if (budget.name, key) not in _spenders:
            return
    limiter = FixedWindowRateLimiter(storage())
    try:
        if limiter.test(item, budget.name, key):
            return
        resets_at = limiter.get_window_stats(item, budget.name, key).reset_time
    except (StorageError, RedisError):
        logger.exception("The budget %r cannot be read", budget.name)
        return
    raise RateLimited(
        "You have used up the time for this kind of request. Try again later.",
        retry_after=max(1, math.ceil(resets_at - time.time())),
    )


def use_budget(budget: Budget, *, caller: str, seconds: float, network: str = "") -> None:
    """Count the time that a request of ``caller`` took."""
    for item, key in _keys(budget, caller=caller, network=network):
        _use(budget, item, key, cost=max(seconds, FLOOR_SECONDS) * _UNITS_PER_SECOND)


def _use(budget: Budget, item: limits.RateLimitItem, key: str, *, cost: float) -> None:
    place = budget.name, key
    with _lock:
        cost += _untold.pop(place, 0)
        units = int(cost) if cost >= _TOLD_UNITS else 0
        _untold[place] = cost - units
        if not units:
            return
    try:
        used = storage().incr(item.key_for(*place), item.get_expiry(), amount=units)
        if used >= item.amount:
            with _lock:
                _spenders[place] = item.get_expiry()
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
def on_budget(budget: Budget, *, caller: str, network: str = "", unread: int = 0) -> Iterator[Cost]:
    """Refuse a caller who has used up a budget, and count what the block costs.

    ``network`` is the client's. ``unread`` is how many bytes of earlier answers the caller has not read.

    Raises:
        RateLimited: as `require_budget`; or this process works on many requests of the caller already, or
            keeps many bytes for it.
    """
    if unread >= budget.unread_bytes:
        raise RateLimited("Read the answers to your earlier requests first.", retry_after=1)
    require_budget(budget, caller=caller, network=network)
    with _place(budget, caller=caller):
        started, cost = budget.clock(), Cost()
        try:
            yield cost
        finally:
            seconds = budget.clock() - started + cost.sent_bytes / BYTES_PER_SECOND
            use_budget(budget, caller=caller, network=network, seconds=seconds)


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


def _keys(budget: Budget, *, caller: str, network: str) -> Iterator[tuple[limits.RateLimitItem, str]]:
    """Yield the limits of a budget in units, and whose they are. A caller without a token is its network."""
    item = limits.parse(settings.CALLER_BUDGETS[budget.name])
    # Until version 0.3 the keys without "ms" counted tenths of a second.
    yield type(item)(item.amount * _UNITS_PER_SECOND, item.multiples), f"ms {caller}"
    if network and network != caller:
        amount = item.amount * _UNITS_PER_SECOND * settings.NETWORK_BUDGET_FACTOR
        yield type(item)(amount, item.multiples), f"ms network {network}"
