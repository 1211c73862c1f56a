"""Have days and periods built again that another release of the service made.

After an upgrade, documents of the earlier release are built again. After a return to the earlier release,
documents of the later one are. During a rolling update both run, and only the later one replaces documents.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from django.core.cache import cache
from django.db.models import Exists, OuterRef

from analytics.models import DayRollup, Kind, SummaryDocument
from analytics.summaries.periods import MERGE_VERSION
from analytics.summaries.rollup_schema import NO_VERSION, ROLLUP_VERSION
from logs.models import PendingBuild
from logs.pending import mark_all_periods, mark_days

if TYPE_CHECKING:
    import uuid
    from datetime import date

#: A later release that was last seen this many seconds ago has been replaced by this one.
GONE_SECONDS: Final = 900.0
#: The cache key of the versions that replace documents, and of the time when their release was last seen.
_SEEN: Final = "summary-versions"


def mark_outdated(*, limit: int) -> None:
    """Mark what another release made, at most ``limit`` days.

    Raises:
        RedisError: Redis does not answer.
    """
    versions = (ROLLUP_VERSION, MERGE_VERSION)
    *seen, seen_at = cache.get(_SEEN) or (*versions, 0.0)
    is_first = seen_at == 0.0
    if tuple(seen) > versions and time.time() - seen_at < GONE_SECONDS:
        return
    cache.set(_SEEN, (*versions, time.time()), timeout=None)
    if is_first or tuple(seen) != versions:
        documents = SummaryDocument.objects.exclude(kind=Kind.DAY).order_by()
        mark_all_periods(tenants=documents.values_list("tenant_id", flat=True).distinct())
    mark_outdated_days(limit=limit)


def mark_outdated_days(*, limit: int) -> int:
    """Record that days must be built again because another version made their rollups. Return the count.

    Cheap when there are none: two index lookups. Days that are already pending are skipped.
    """
    pending = PendingBuild.objects.filter(tenant_id=OuterRef("tenant_id"), day=OuterRef("day"))
    rows = DayRollup.objects.filter(~Exists(pending)).order_by("version").values_list("tenant_id", "day")
    earlier = rows.filter(version__gt=NO_VERSION, version__lt=ROLLUP_VERSION)
    later = rows.filter(version__gt=ROLLUP_VERSION)
    found = [*earlier[:limit], *later[:limit]][:limit]
    outdated: dict[uuid.UUID, list[date]] = {}
    for tenant, day in found:
        outdated.setdefault(tenant, []).append(day)
    # Sorted, so that two callers at once cannot deadlock.
    for tenant, days in sorted(outdated.items()):
        mark_days(tenant=tenant, days=days)
    return len(found)
