"""The yearly summary and the activity of its days. Contract: "Summary records"."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from analytics.source import Rollups

#: Activity covers this many days, counted back from the last day with data.
ACTIVITY_DAYS: Final = 365

_ACTIVITY: Final = """
    WITH per_key AS (
        SELECT day, cache_key, arg_max(stored_size, stored_row) AS size
        FROM groups WHERE stored_row IS NOT NULL GROUP BY day, cache_key
    ),
    stored AS (SELECT day, count(*) AS elements, sum(size)::HUGEINT AS size FROM per_key GROUP BY day),
    asked AS (SELECT day, count(DISTINCT statement) AS queries FROM groups GROUP BY day),
    served AS (
        SELECT day, count(DISTINCT user_name) AS users, sum(hits)::BIGINT AS hits,
            sum(hits + misses)::BIGINT AS total, coalesce(sum(hit_bytes), 0)::HUGEINT AS hit_bytes
        FROM hours GROUP BY day
    )
    SELECT day, queries, users, hits, total, hit_bytes, coalesce(size, 0) AS size,
        coalesce(elements, 0) AS elements
    FROM served JOIN asked USING (day) LEFT JOIN stored USING (day) ORDER BY day
"""

_STORED_OR_SERVED: Final = """
    SELECT count(DISTINCT statement) AS queries FROM groups
    WHERE hits > 0 OR stored_row IS NOT NULL
"""
_USERS: Final = "SELECT count(DISTINCT user_name) AS users FROM hours"


def daily_activity(rollups: Rollups) -> list[dict[str, Any]]:
    """One entry per day in ``rollups``, oldest first."""
    return [
        {
            "date": row["day"].replace("-", "/"),
            "queries": row["queries"],
            "users": row["users"],
            "cacheHits": row["hits"],
            "totalHits": row["total"],
            "dataTransfer": row["hit_bytes"],
            "cacheSize": row["size"],
            "cacheElements": row["elements"],
        }
        for row in rollups.rows(_ACTIVITY)
    ]


def first_activity_day(last: date) -> date:
    """The first of the 365 days that end on ``last``, the last day with data of a year."""
    return last - timedelta(days=ACTIVITY_DAYS - 1)


def year_document(
    rollups: Rollups, *, tenant: UUID, year: int, activity: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The yearly summary.

    Args:
        rollups: the days of ``year``.
        activity: `daily_activity`, oldest first, of every day of ``year`` with data, and of those of the
            year before from `first_activity_day` on.
    """
    own = [entry for entry in activity if entry["date"].startswith(f"{year:04}/")]
    last = date.fromisoformat(own[-1]["date"].replace("/", "-"))
    first = f"{first_activity_day(last):%Y/%m/%d}"
    return {
        "tenantSummaryReportID": f"{tenant}-{year}",
        "tenantId": str(tenant),
        "reportyears": [str(year)],
        "totalUsers": rollups.row(_USERS)["users"],
        "totalQueries": rollups.row(_STORED_OR_SERVED)["queries"],
        "totalCacheHits": sum(entry["cacheHits"] for entry in own),
        "totalHits": sum(entry["totalHits"] for entry in own),
        "cacheSize": sum(entry["cacheSize"] for entry in own),
        "cacheElements": sum(entry["cacheElements"] for entry in own),
        "last365daysQueryActivity": [entry for entry in activity if entry["date"] >= first],
    }
