"""The monthly summary. Contract: "Summary records"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.documents.totals import compute_totals, hourly_activity
from analytics.numbers import mean_or_none

if TYPE_CHECKING:
    from analytics.source import Rollups


def month_document(rollups: Rollups, *, month: int) -> dict[str, Any]:
    """The summary of the days in ``rollups``, all of ``month`` (1 to 12).

    Users and statements are distinct over the whole month, in each hour of day too; an empty hour has
    null for its split averages.
    """
    totals = compute_totals(rollups)
    return {
        "month": month,
        "totalQueries": totals.queries,
        "totalUsers": totals.users,
        "totalCacheHits": totals.hits,
        "totalCacheMisses": totals.misses,
        "totalHits": totals.hits + totals.misses,
        "totalCachedBytes": totals.cached_bytes,
        "totalPassThroughBytes": totals.pass_through_bytes,
        "averageResponseTime": totals.average,
        "cacheHitAverageResponseTime": totals.hit_average,
        "cacheMissAverageResponseTime": totals.miss_average,
        "minResponseTime": totals.shortest,
        "maxResponseTime": totals.longest,
        "hourlyActivity": hourly_activity(rollups, split_mean=mean_or_none),
    }
