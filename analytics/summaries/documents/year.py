"""The yearly summary and the activity of its days. Contract: "Summary records"."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class DayActivity(JsonStruct):
    """One day of a year."""

    date: Annotated[str, Meta(extra_json_schema={"pattern": r"^\d{4}/\d{2}/\d{2}$"})]
    queries: Count
    users: Count
    cache_hits: Count
    total_hits: Count
    data_transfer: Annotated[Count, Meta(description="Bytes served from cache.")]
    cache_size: Annotated[Count, Meta(description="Bytes of new cache entries.")]
    cache_elements: Annotated[Count, Meta(description="New cache entries.")]


class YearlySummary(JsonStruct):
    """The requests of one year, by day."""

    report_id: str = msgspec.field(name="tenantSummaryReportID")
    tenant_id: UUID
    report_years: list[str] = msgspec.field(name="reportyears")
    total_users: Count
    total_queries: Annotated[Count, Meta(description="Distinct statements that were stored or served.")]
    total_cache_hits: Count
    total_hits: Count
    cache_size: Count
    cache_elements: Count
    activity: list[DayActivity] = msgspec.field(name="last365daysQueryActivity")


def daily_activity(rollups: Rollups) -> list[DayActivity]:
    """Return one entry for each day with data in ``rollups``, oldest first."""
    return [
        DayActivity(
            date=row["date"],
            queries=row["queries"],
            users=row["users"],
            cache_hits=row["hits"],
            total_hits=row["total"],
            data_transfer=row["hit_bytes"],
            cache_size=row["size"],
            cache_elements=row["elements"],
        )
        for row in rollups.rows(_ACTIVITY)
    ]


def first_activity_day(last: date) -> date:
    """Return the first of the 365 days that end on ``last``."""
    return days_before(last, ACTIVITY_DAYS - 1)


def year_document(
    rollups: Rollups, *, tenant: UUID, year: int, activity: Sequence[DayActivity]
) -> YearlySummary:
    """Return the yearly summary.

    Args:
        rollups: the merged rollups of ``year``.
        activity: `daily_activity` of the year before, then of ``year``. The summary leaves out days before
            `first_activity_day`.
    """
    own = [entry for entry in activity if entry.date.startswith(f"{year:04}/")]
    last = date.fromisoformat(own[-1].date.replace("/", "-"))
    first = first_activity_day(last).isoformat().replace("-", "/")
    return YearlySummary(
        report_id=f"{tenant}-{year:04}",
        tenant_id=tenant,
        report_years=[f"{year:04}"],
        total_users=rollups.row(_USERS)["users"],
        total_queries=rollups.row(_STORED_OR_SERVED)["queries"],
        total_cache_hits=sum(entry.cache_hits for entry in own),
        total_hits=sum(entry.total_hits for entry in own),
        cache_size=sum(entry.cache_size for entry in own),
        cache_elements=sum(entry.cache_elements for entry in own),
        activity=[entry for entry in activity if entry.date >= first],
    )
