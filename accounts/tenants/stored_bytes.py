"""How many bytes a tenant may store per day. Contract: accounts; Errors (429).

All processes share the count; without Redis nothing is refused.
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
from accounts.tenants.plans import limits_of
from tenantadmin.lib.core.errors import RateLimited
from tenantadmin.lib.core.rendering import dump_json

if TYPE_CHECKING:
    from uuid import UUID

logger = logging.getLogger(__name__)
#: One key for all plans, so that another plan acts at once.
_DAY: Final = RateLimitItemPerDay(1)


class Kind(StrEnum):
    """What is counted together. The notes of a Gateway's markers leave room for writes of the rules."""

    DOCUMENTS = "revisions, drafts and cache metadata"
    NOTES = "statements and reasons of markers"


def count_stored(tenant_id: UUID, *documents: Any, kind: Kind = Kind.DOCUMENTS) -> None:
    """Count the JSON of documents that will be stored.

    Refused documents do not count. Call it before the transaction of the write; if that fails, they count.

    Raises:
        RateLimited: the tenant would store more than its plan allows in a day; ``Retry-After`` says when the
            day of its first write ends.
    """
    size = sum(len(dump_json(document)) for document in documents)
    key = _DAY.key_for("stored" if kind is Kind.DOCUMENTS else "notes", str(tenant_id))
    try:
        used = storage().incr(key, _DAY.get_expiry(), amount=size)
        limit = _limit_of(tenant_id, used=used)
        if limit is None or used <= limit:
            return
        storage().incr(key, _DAY.get_expiry(), amount=-size)
        retry_after = max(1, math.ceil(storage().get_expiry(key) - time.time()))
    except (StorageError, RedisError):
        logger.exception("The bytes that the tenant %s stores cannot be counted", tenant_id)
        return
    raise RateLimited(
        f"The tenant's plan allows {limit:,} bytes of new {kind} a day; this would make {used:,}. "
        "Try again later.",
        retry_after=retry_after,
    )


def _limit_of(tenant_id: UUID, *, used: int) -> int | None:
    """Return the limit of the tenant's plan. Without a query if every plan allows ``used`` bytes."""
    if all(limit is None or used <= limit for limit in map(_stored_bytes, settings.PLAN_LIMITS)):
        return None
    return _stored_bytes(Tenant.objects.values_list("account__plan", flat=True).get(pk=tenant_id))


def _stored_bytes(plan: str) -> int | None:
    return limits_of(plan).stored_bytes
