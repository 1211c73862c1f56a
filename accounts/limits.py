"""Rate limits by Redis. They are exact under concurrency and refuse if Redis fails.

Contract: Errors (429, 500).
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from functools import lru_cache
from typing import Any, Final

import limits
from django.conf import settings
from limits.errors import StorageError
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter
from redis import ConnectionPool, Redis, RedisError

from tenantadmin.lib.core.errors import InternalError, RateLimited

logger = logging.getLogger(__name__)
_FREE_TRIES: Final = 5
_FIRST_WAIT_SECONDS: Final = 1
_MAX_WAIT_SECONDS: Final = 900
_FORGET_SECONDS: Final = 3600
#: In one atomic step: return the milliseconds that are left to wait, or count the try and return 0.
_CLAIM_TRY: Final = """
local left = redis.call('PTTL', KEYS[2])
if left > 0 then return left end
local tries = redis.call('INCR', KEYS[1])
redis.call('EXPIRE', KEYS[1], ARGV[3])
local over = tries - tonumber(ARGV[1])
if over >= 0 then
    local wait = ARGV[4] * 2 ^ math.min(over, 20)
    redis.call('SET', KEYS[2], '', 'EX', math.min(wait, tonumber(ARGV[2])))
end
return 0
"""


def count_use(*, limit: str, kind: str, key: str) -> None:
    """Count one use of ``key`` against a limit such as ``"5 per 15 minutes"``.

    The limit holds for any time window of that length and across all processes, because Redis counts in one
    atomic step. ``kind`` separates the keys of different limits.

    Raises:
        RateLimited: the limit is reached; ``Retry-After`` says in how many seconds a use is free again.
        InternalError: the limit cannot be parsed, or Redis does not answer.
    """
    try:
        item, limiter = limits.parse(limit), _limiter()
        if limiter.hit(item, kind, key):
            return
        resets_at = limiter.get_window_stats(item, kind, key).reset_time
    except (ValueError, StorageError, RedisError) as error:
        logger.exception("The rate limit %r of %s cannot be applied", limit, kind)
        raise InternalError("The rate limit cannot be applied.") from error
    raise RateLimited(retry_after=max(1, math.ceil(resets_at - time.time())))


def claim_try(*, kind: str, key: str) -> None:
    """Count one try of ``key``. After `_FREE_TRIES` each further one waits twice as long as the one before.

    The wait begins at one second and ends at 15 minutes. Tries that are refused do not count. An hour after
    the last try all are forgotten.

    Raises:
        RateLimited: the wait is not over; ``Retry-After`` says how many seconds are left.
        InternalError: Redis does not answer.
    """
    try:
        left: Any = _redis(settings.REDIS_URL).eval(
            _CLAIM_TRY,
            2,
            *_keys(kind, key),
            *(_FREE_TRIES, _MAX_WAIT_SECONDS, _FORGET_SECONDS, _FIRST_WAIT_SECONDS),
        )
    except RedisError as error:
        logger.exception("Tries of %s cannot be counted", kind)
        raise InternalError("Tries cannot be counted.") from error
    if left:
        raise RateLimited(retry_after=math.ceil(left / 1000))


def forget_tries(*, kind: str, key: str) -> None:
    """Forget the tries of ``key``. If Redis does not answer, they stay."""
    try:
        _redis(settings.REDIS_URL).delete(*_keys(kind, key))
    except RedisError:
        logger.exception("Tries of %s cannot be forgotten", kind)


def _keys(kind: str, key: str) -> tuple[str, str]:
    base = f"{settings.RATE_LIMIT_NAMESPACE}:tries:{kind}:{hashlib.sha256(key.encode()).hexdigest()}"
    return f"{base}:count", f"{base}:wait"


def _limiter() -> MovingWindowRateLimiter:
    return MovingWindowRateLimiter(storage())


def storage() -> Any:
    """Return the storage of all limits: Redis, with short timeouts."""
    return _storage(settings.REDIS_URL, settings.RATE_LIMIT_NAMESPACE)


@lru_cache(maxsize=8)
def _storage(url: str, namespace: str) -> Any:
    pool = ConnectionPool.from_url(url, **settings.REDIS_OPTIONS)
    return RedisStorage("redis://", connection_pool=pool, wrap_exceptions=True, key_prefix=namespace)


@lru_cache(maxsize=8)
def _redis(url: str) -> Redis:
    return Redis.from_url(url, **settings.REDIS_OPTIONS)
