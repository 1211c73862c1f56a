"""How much a tenant, an account or a client network may store in a day. Contract: accounts; Errors (429).

Each `Quota` counts bytes. A row counts for `ROW_BYTES` besides its text, so the bytes bound the rows too. All
processes share the count; without Redis nothing is refused.
"""

from __future__ import annotations

import logging
import math
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from limits import RateLimitItemPerDay
from limits.errors import StorageError
from redis import RedisError

from accounts.limits import storage
from accounts.models import Tenant
from tenantadmin.lib.core.errors import RateLimited
from tenantadmin.lib.core.rendering import dump_json

if TYPE_CHECKING:
    from uuid import UUID

logger = logging.getLogger(__name__)
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
    # Not by `accounts.tenants.plans`: modules of that package import this one.
    limit: int | None = settings.PLAN_LIMITS[plan].get("stored_bytes")
    return limit
