"""List the raw logs of every tenant once per `LOG_SWEEP_SECONDS`, in case a notification was lost."""

from __future__ import annotations

from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction

from logs.listing import find_tenants
from logs.models import EPOCH, LogSweep
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from tenantadmin.lib.objectstore import ObjectStore

_BATCH: Final = 5_000
#: At most, between two machines.
_CLOCKS_DIFFER: Final = timedelta(minutes=2)


def add_tenants(tenants: Iterable[UUID | None]) -> None:
    """Add tenants to the sweep. Tenants that are already in it keep their turn."""
    rows = [LogSweep(tenant_id=tenant) for tenant in tenants]
    LogSweep.objects.bulk_create(rows, batch_size=_BATCH, ignore_conflicts=True)


def take_next(store: ObjectStore, *, interval_seconds: float) -> list[UUID]:
    """Return the tenants whose logs must be listed now, the longest unlisted first.

    Each run takes a share of all tenants, so that the work is spread over `LOG_SWEEP_SECONDS`. The list of
    tenants has a turn too: then new tenants of the store join, and are returned if the share allows it.

    Args:
        interval_seconds: the time from one run to the next.
    """
    if not LogSweep.objects.filter(tenant_id=None).exists():
        add_tenants([None])
    taken = _take(interval_seconds)
    if None in taken:
        known = set(LogSweep.objects.values_list("tenant_id", flat=True))
        add_tenants(tenant for tenant in find_tenants(store) if tenant not in known)
        taken += _take(interval_seconds)
    return [tenant for tenant in taken if tenant is not None]


def sweep_age() -> float | None:
    """Return the seconds since the tenant was listed that waits longest, or None before the first sweep."""
    listed = LogSweep.objects.filter(tenant_id__isnull=False, listed_at__gt=EPOCH)
    first = listed.values_list("listed_at", flat=True).first()
    return None if first is None else max(0.0, (now() - first).total_seconds())


def _take(interval_seconds: float) -> list[UUID | None]:
    moment = now()
    # A tenth more, so that the sweep does not fall behind.
    limit = ceil(1.1 * LogSweep.objects.count() * interval_seconds / settings.LOG_SWEEP_SECONDS)
    long_ago = moment - timedelta(seconds=settings.LOG_SWEEP_SECONDS)
    # A time in the future is of a clock that has been set back since.
    LogSweep.objects.filter(listed_at__gt=moment + _CLOCKS_DIFFER).update(listed_at=long_ago)
    due = LogSweep.objects.filter(listed_at__lte=long_ago)
    with transaction.atomic():
        rows = list(due.select_for_update(skip_locked=True)[: max(limit, 1)])
        LogSweep.objects.filter(pk__in=[row.pk for row in rows]).update(listed_at=moment)
    return [row.tenant_id for row in rows]
