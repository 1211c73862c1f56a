"""The monthly summary. Contract: "Summary records"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from analytics.summaries.documents.totals import MonthHourActivity, hourly_activity, read_totals
from analytics.summaries.numbers import mean_or_none
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from analytics.summaries.rollups import Rollups


class MonthlySummary(JsonStruct):
    """The requests of one month (UTC). Times in ms, sizes in bytes."""

    month: Annotated[int, Meta(ge=1, le=12)]
    total_queries: Count
    total_users: Count
    total_cache_hits: Count
    total_cache_misses: Count | None = None
    total_hits: Count
    total_cached_bytes: Count | None = None
    total_pass_through_bytes: Count | None = None
    average_response_time: Count
    cache_hit_average_response_time: Count | None = None
    cache_miss_average_response_time: Count | None = None
    min_response_time: Count
    max_response_time: Count
    hourly_activity: list[MonthHourActivity]


def month_document(rollups: Rollups, *, month: int) -> MonthlySummary | None:
    """Return the summary of ``month`` (1 to 12) from its merged ``rollups``; None if there is no log entry.

    Each hour of the day counts the distinct users and statements of the whole month. An hour without entries
    has null for its split averages.
    """
    stored = read_totals(rollups)
    if stored is None:
        return None
    totals, queries = stored
    whole = totals.whole
    return MonthlySummary(
        month=month,
        total_queries=queries,
        total_users=whole["users"],
        total_cache_hits=whole["hits"],
        total_cache_misses=whole["misses"],
        total_hits=whole["hits"] + whole["misses"],
        total_cached_bytes=whole["hit_bytes"],
        total_pass_through_bytes=whole["other_bytes"],
        average_response_time=totals.mean("time"),
        cache_hit_average_response_time=totals.mean("hit_time"),
        cache_miss_average_response_time=totals.mean("miss_time"),
        min_response_time=whole["time_min"],
        max_response_time=whole["time_max"],
        hourly_activity=hourly_activity(totals, MonthHourActivity, split_mean=mean_or_none),
    )
