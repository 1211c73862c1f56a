"""Limits of plans, and those that all processes share in Redis: rates, tries, and bytes stored in a day.

Rates and tries are exact under concurrency and refuse if Redis fails. Each `Quota` counts the bytes that a
tenant, an account or a client network stores in a day; a row counts for `ROW_BYTES` besides its text, so the
bytes bound the rows too. Without Redis no quota refuses. Contract: accounts; Errors (429, 500).
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import limits
from django.conf import settings
from limits import RateLimitItemPerDay
from limits.errors import StorageError
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter
from redis import ConnectionPool, Redis, RedisError

from accounts.models import Tenant
from tenantadmin.lib.core.errors import Detail, InternalError, PlanLimitExceeded, RateLimited
from tenantadmin.lib.core.rendering import dump_json


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """How many of each a plan allows; None means no limit. All but ``tenants`` are per tenant.

    Attributes:
        stored_bytes: of each kind of rows in a day (`accounts.limits.Quota`).
        markers: that are not expired.
    """

    tenants: int | None
    fqdns: int | None
    rules: int | None
    stored_bytes: int | None = None
    markers: int | None = None
    cache_entries: int | None = None


def limits_of(plan: str) -> PlanLimits:
    """Return the limits of ``plan``."""
    return PlanLimits(**settings.PLAN_LIMITS[plan])


def require_within(limit: int | None, *, count: int, what: str, plan: str, path: str) -> None:
    """Refuse more than the plan allows. ``what`` is a plural noun, ``path`` a JSON Pointer into the request.

    Raises:
        PlanLimitExceeded: ``count`` is over ``limit``.
    """
    if limit is not None and count > limit:
        message = f"The plan '{plan}' allows {limit} {what}; this would make {count}."
        raise PlanLimitExceeded(message, details=[Detail(path, "plan-limit-exceeded", message)])


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
        item, limiter = limits.parse(limit), MovingWindowRateLimiter(storage())
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


#: What a row takes besides its text: ids, times, addresses and its place in indexes.
ROW_BYTES: Final = 256
#: One key for all plans, so that another plan acts at once.
_DAY: Final = RateLimitItemPerDay(1)
#: The plan of an account itself, and of a tenant that is gone.
_SMALLEST_PLAN: Final = "free"


class Quota(StrEnum):
    """What is counted together. Each has the plan's bytes for itself: audits leave room for documents."""

    DOCUMENTS = "revisions, drafts, replays and cache metadata"
    NOTES = "statements and reasons of markers"
    AUDIT = "reads and queries in the audit"
    FIGURES = "queries of pages in the audit"
    EVENTS = "events"


def use_quota(quota: Quota, owner: UUID | str, *stored: Any) -> None:
    """Count rows that will be stored for a tenant or an account (its id), or for a client network.

    Refused rows do not count. Call it before the transaction of the write; if that fails, they count.

    Args:
        stored: for each row its text, or a document of which the JSON counts.

    Raises:
        RateLimited: it would be more than the plan, or one network, may store in a day; ``Retry-After`` says
            when the day of the first write ends.
    """
    size = sum(ROW_BYTES + _size_of(row) for row in stored)
    key = _DAY.key_for("stored", quota.name.lower(), str(owner))
    try:
        used = storage().incr(key, _DAY.get_expiry(), amount=size)
        limit = _limit_of(owner, used=used)
        if limit is None or used <= limit:
            return
        storage().incr(key, _DAY.get_expiry(), amount=-size)
        retry_after = max(1, math.ceil(storage().get_expiry(key) - time.time()))
    except (StorageError, RedisError):
        logger.exception("The bytes stored for %s cannot be counted", owner)
        return
    whose = "Your network may store" if isinstance(owner, str) else "The plan allows"
    raise RateLimited(
        f"{whose} {limit:,} bytes of new {quota} a day; this would make {used:,}. Try again later.",
        retry_after=retry_after,
    )


def _size_of(row: Any) -> int:
    return len(row.encode(errors="replace")) if isinstance(row, str) else len(dump_json(row))


def _limit_of(owner: UUID | str, *, used: int) -> int | None:
    """Return the limit of the network or of the tenant's plan. Without a query if all allow ``used``."""
    if isinstance(owner, str):
        network: int = settings.NETWORK_STORED_BYTES
        return network
    if all(limit is None or used <= limit for limit in map(_stored_bytes, settings.PLAN_LIMITS)):
        return None
    plans = Tenant.objects.filter(pk=owner).values_list("account__plan", flat=True)
    return _stored_bytes(plans.first() or _SMALLEST_PLAN)


def _stored_bytes(plan: str) -> int | None:
    return limits_of(plan).stored_bytes
