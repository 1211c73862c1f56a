"""Rate limits for magic links and passwords. They are exact under concurrency and refuse if Redis fails.

Contract: Errors (429, 500).
"""

from __future__ import annotations

import logging
import math
import time
from functools import lru_cache
from typing import Any

import limits
from django.conf import settings
from limits.errors import StorageError
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter
from redis import ConnectionPool, RedisError

from tenantadmin.core.errors import InternalError, RateLimited

logger = logging.getLogger(__name__)
_TIMEOUT_SECONDS = 2.0


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


def reset_uses(*, limit: str, kind: str, key: str) -> None:
    """Reset the count of ``key`` to zero. If Redis does not answer, the count stays."""
    try:
        _limiter().clear(limits.parse(limit), kind, key)
    except (StorageError, RedisError):
        logger.exception("The rate limit %r of %s cannot be cleared", limit, kind)


def _limiter() -> MovingWindowRateLimiter:
    return MovingWindowRateLimiter(storage())


def storage() -> Any:
    """Return the storage of all limits: Redis, with short timeouts."""
    return _storage(settings.REDIS_URL, settings.RATE_LIMIT_NAMESPACE)


@lru_cache(maxsize=8)
def _storage(url: str, namespace: str) -> Any:
    pool = ConnectionPool.from_url(
        url, socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS
    )
    return RedisStorage("redis://", connection_pool=pool, wrap_exceptions=True, key_prefix=namespace)
