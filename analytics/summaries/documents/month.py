"""The monthly summary. Contract: "Summary records"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.summaries.documents.totals import averages, hourly_activity, read_totals
from analytics.summaries.numbers import mean_or_none

if TYPE_CHECKING:
    from analytics.summaries.rollups import Rollups


def month_document(rollups: Rollups, *, month: int) -> dict[str, Any] | None:
    """Return the summary of ``month`` (1 to 12) from its merged ``rollups``; None if there is no log entry.

    Each hour of the day counts the distinct users and statements of the whole month. An hour without entries
    has null for its split averages.
    """
    stored = read_totals(rollups)
    if stored is None:
        return None
    totals, queries = stored
    whole = totals.whole
    return {
        "month": month,
        "totalQueries": queries,
        "totalUsers": whole["users"],
        "totalCacheHits": whole["hits"],
        "totalCacheMisses": whole["misses"],
        "totalHits": whole["hits"] + whole["misses"],
        "totalCachedBytes": whole["hit_bytes"],
        "totalPassThroughBytes": whole["other_bytes"],
        **averages(totals),
        "hourlyActivity": hourly_activity(totals, split_mean=mean_or_none),
    }
