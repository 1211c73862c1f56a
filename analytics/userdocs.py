"""Documents of one user: derived from rollups when asked for, and remembered until the rollups change.

Contract: "Summary records": the same shapes as the tenant's, scoped to one user.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Final

from django.core.cache import cache

from analytics.documents.day import day_document
from analytics.documents.month import month_document
from analytics.documents.year import daily_activity, year_document
from analytics.encoding import encode_document
from analytics.periods import period_bounds, source_digest
from analytics.rebuild import opened_rollups
from analytics.store import day_builds, rolled_days
from tenantadmin.http.etags import strong_etag

if TYPE_CHECKING:
    from uuid import UUID

    from tenantadmin.objectstore import ObjectStore

_CACHE_SECONDS: Final = 3600
#: A document above this is computed again rather than kept in the cache.
_CACHE_BYTES: Final = 1 << 20
_HAS_ENTRIES: Final = "SELECT count(*) AS entries FROM hours"


def user_etag(*, tenant: UUID, user: str, period: str) -> str:
    """The ETag of a user's document of ``period``, from the builds it would be computed from."""
    return strong_etag(tenant, user, period, source_digest(period, day_builds(tenant=tenant)))


def user_document(store: ObjectStore, *, tenant: UUID, user: str, period: str, etag: str) -> bytes | None:
    """A user's document as it goes out, or None where the user has no entry in ``period``.

    Args:
        etag: what `user_etag` gave; the document is remembered under it.
    """
    key = f"user-document:{etag}"
    remembered: bytes | None = cache.get(key)
    if remembered is not None:
        return remembered
    document = _compute(store, tenant=tenant, user=user, period=period)
    if document is None:
        return None
    body = encode_document(document)
    if len(body) <= _CACHE_BYTES:
        cache.set(key, body, _CACHE_SECONDS)
    return body


def _compute(store: ObjectStore, *, tenant: UUID, user: str, period: str) -> dict[str, Any] | None:
    first, last = period_bounds(period)
    days = rolled_days(store, tenant=tenant, first=first, last=last)
    if not days:
        return None
    with opened_rollups(store, days, user=user) as rollups:
        if not rollups.row(_HAS_ENTRIES)["entries"]:
            return None
        if first == last:
            return day_document(rollups)
        if first.month == last.month:
            return month_document(rollups, month=first.month)
        activity = _activity_before(store, tenant=tenant, user=user, first=first) + daily_activity(rollups)
        return year_document(rollups, tenant=tenant, year=first.year, activity=activity)


def _activity_before(store: ObjectStore, *, tenant: UUID, user: str, first: date) -> list[dict[str, Any]]:
    """The user's activity in the year before, into which the 365 days may reach."""
    if first.year == 1:
        return []
    before = date(first.year - 1, 1, 1), date(first.year - 1, 12, 31)
    days = rolled_days(store, tenant=tenant, first=before[0], last=before[1])
    if not days:
        return []
    with opened_rollups(store, days, user=user) as rollups:
        return daily_activity(rollups)
