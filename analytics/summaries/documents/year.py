"""The yearly summary and the activity of its days. Contract: "Summary records"."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from analytics.summaries.rollups import Rollups

#: The activity covers this many days, up to the last day with data.
ACTIVITY_DAYS: Final = 365

_ACTIVITY: Final = """
    SELECT strftime(day, '%Y/%m/%d') AS date, queries, users, hits, total,
        coalesce(hit_bytes, 0)::HUGEINT AS hit_bytes, stored_size::HUGEINT AS size,
        stored_elements AS elements
    FROM <activity> ORDER BY day
"""

_STORED_OR_SERVED: Final = "SELECT count(*) AS queries FROM <statements> WHERE is_kept"
_USERS: Final = "SELECT count(DISTINCT user_name) AS users FROM <user_activity>"


def daily_activity(rollups: Rollups) -> list[dict[str, Any]]:
    """Return one entry for each day with data in ``rollups``, oldest first."""
    return [
        {
            "date": row["date"],
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
    """Return the first of the 365 days that end on ``last``."""
    return date.fromordinal(max(last.toordinal() - (ACTIVITY_DAYS - 1), 1))


def year_document(
    rollups: Rollups, *, tenant: UUID, year: int, activity: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the yearly summary.

    Args:
        rollups: the merged rollups of ``year``.
        activity: `daily_activity` of the year before, then of ``year``. The summary leaves out days before
            `first_activity_day`.
    """
    own = [entry for entry in activity if entry["date"].startswith(f"{year:04}/")]
    last = date.fromisoformat(own[-1]["date"].replace("/", "-"))
    first = first_activity_day(last).isoformat().replace("-", "/")
    return {
        "tenantSummaryReportID": f"{tenant}-{year:04}",
        "tenantId": str(tenant),
        "reportyears": [f"{year:04}"],
        "totalUsers": rollups.row(_USERS)["users"],
        "totalQueries": rollups.row(_STORED_OR_SERVED)["queries"],
        "totalCacheHits": sum(entry["cacheHits"] for entry in own),
        "totalHits": sum(entry["totalHits"] for entry in own),
        "cacheSize": sum(entry["cacheSize"] for entry in own),
        "cacheElements": sum(entry["cacheElements"] for entry in own),
        "last365daysQueryActivity": [entry for entry in activity if entry["date"] >= first],
    }
