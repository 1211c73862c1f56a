"""What day and month documents have in common: totals and the activity by hour of day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from analytics.numbers import mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.source import Rollups

#: Sums over rows of ``hours``. Wide sums come as DECIMAL, HUGEINT gives exact integers in Python.
HOUR_SUMS: Final = """
    coalesce(sum(entries), 0)::BIGINT AS entries,
    coalesce(sum(hits), 0)::BIGINT AS hits,
    coalesce(sum(misses), 0)::BIGINT AS misses,
    coalesce(sum(hit_bytes), 0)::HUGEINT AS hit_bytes,
    coalesce(sum(other_bytes), 0)::HUGEINT AS other_bytes,
    coalesce(sum(time_sum), 0)::HUGEINT AS time_sum,
    coalesce(sum(time_count), 0)::BIGINT AS time_count,
    coalesce(min(time_min), 0) AS time_min,
    coalesce(max(time_max), 0) AS time_max,
    coalesce(sum(hit_time_sum), 0)::HUGEINT AS hit_time_sum,
    coalesce(sum(hit_time_count), 0)::BIGINT AS hit_time_count,
    coalesce(sum(miss_time_sum), 0)::HUGEINT AS miss_time_sum,
    coalesce(sum(miss_time_count), 0)::BIGINT AS miss_time_count,
    count(DISTINCT user_name) AS users
"""

_TOTALS: Final = f"SELECT {HOUR_SUMS} FROM hours"  # noqa: S608  # a constant
_BY_HOUR: Final = f"SELECT hour, {HOUR_SUMS} FROM hours GROUP BY hour"  # noqa: S608  # a constant
_QUERIES: Final = "SELECT count(DISTINCT statement) AS queries FROM groups"
_QUERIES_BY_HOUR: Final = """
    SELECT hour, count(*) AS queries
    FROM (SELECT bit_or(hour_mask) AS mask FROM groups WHERE statement IS NOT NULL GROUP BY statement),
        range(24) AS hours_of_day(hour)
    WHERE (mask >> hour::INTEGER) & 1 = 1
    GROUP BY hour
"""


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of a period. Times in ms, rounded half up, 0 without data; sizes in bytes."""

    users: int
    queries: int
    hits: int
    misses: int
    cached_bytes: int
    pass_through_bytes: int
    average: int
    hit_average: int
    miss_average: int
    shortest: int
    longest: int


def compute_totals(rollups: Rollups) -> Totals:
    """The totals over all days and users of ``rollups``."""
    row = rollups.row(_TOTALS)
    return Totals(
        users=row["users"],
        queries=rollups.row(_QUERIES)["queries"],
        hits=row["hits"],
        misses=row["misses"],
        cached_bytes=row["hit_bytes"],
        pass_through_bytes=row["other_bytes"],
        average=mean(row["time_sum"], row["time_count"]),
        hit_average=mean(row["hit_time_sum"], row["hit_time_count"]),
        miss_average=mean(row["miss_time_sum"], row["miss_time_count"]),
        shortest=row["time_min"],
        longest=row["time_max"],
    )


def hourly_activity(
    rollups: Rollups, *, split_mean: Callable[[int | None, int], int | None]
) -> list[dict[str, Any]]:
    """24 entries by hour of day (UTC), over all days of ``rollups``.

    Args:
        split_mean: gives the two split averages; it decides what an empty bucket shows.
    """
    sums = {row["hour"]: row for row in rollups.rows(_BY_HOUR)}
    queries = {row["hour"]: row["queries"] for row in rollups.rows(_QUERIES_BY_HOUR)}
    activity = []
    for hour in range(24):
        row = sums.get(hour, {})
        hits, misses = row.get("hits", 0), row.get("misses", 0)
        activity.append(
            {
                "hour": hour,
                "queries": queries.get(hour, 0),
                "totalHits": hits + misses,
                "cacheHits": hits,
                "cacheMisses": misses,
                "cachedBytes": row.get("hit_bytes", 0),
                "passThroughBytes": row.get("other_bytes", 0),
                "cacheHitAverageResponseTime": split_mean(
                    row.get("hit_time_sum"), row.get("hit_time_count", 0)
                ),
                "cacheMissAverageResponseTime": split_mean(
                    row.get("miss_time_sum"), row.get("miss_time_count", 0)
                ),
                "users": row.get("users", 0),
            }
        )
    return activity
