"""The totals and the activity by hour of day, for daily and monthly summaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from msgspec import Meta

from analytics.summaries.numbers import mean
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from analytics.summaries.rollups import Rollups

#: Sums over hours and users.
ADDITIVE: Final = (
    "hits", "misses", "hit_bytes", "other_bytes", "time_sum", "time_count",
    "hit_time_sum", "hit_time_count", "miss_time_sum", "miss_time_count",
)  # fmt: skip
#: The source has one row per hour of day and user. Wide sums are DECIMAL; as HUGEINT they become Python ints.
_SUMS: Final = f"""
    SELECT hour,
        {", ".join(f"coalesce(sum({name}), 0)::HUGEINT AS {name}" for name in ADDITIVE)},
        min(time_min) AS time_min,
        max(time_max) AS time_max,
        count(user_name) AS users
    FROM <hours> GROUP BY hour
"""  # noqa: S608  # only constants

#: The number of distinct statements by hour. Hour 24 stands for the whole period.
_STATEMENTS: Final = f"""
    SELECT hour, count(*) AS queries
    FROM (SELECT hour_mask | {1 << 24} AS hour_mask FROM <statements>), range(25) AS hours(hour)
    WHERE hour_mask >> hour::INTEGER & 1 = 1 GROUP BY hour
"""  # noqa: S608  # only constants
_USERS: Final = "SELECT count(DISTINCT user_name) AS users FROM <user_activity>"


class MonthHourActivity(JsonStruct):
    """As in a daily summary, but the two split averages are null without data."""

    hour: Annotated[int, Meta(ge=0, le=23)]
    queries: Count
    total_hits: Count
    cache_hits: Count
    cache_misses: Count
    cached_bytes: Count
    pass_through_bytes: Count
    cache_hit_average_response_time: Annotated[Count | None, Meta(description="null means no data.")]
    cache_miss_average_response_time: Annotated[Count | None, Meta(description="null means no data.")]
    users: Count


class HourActivity(MonthHourActivity):
    """One hour of day, UTC; ``hour`` 0 is midnight. Times in ms, sizes in bytes."""

    cache_hit_average_response_time: Annotated[Count, Meta(description="0 means no data.")]
    cache_miss_average_response_time: Annotated[Count, Meta(description="0 means no data.")]


_Activity = TypeVar("_Activity", bound=MonthHourActivity)


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums of a period, over the whole period and by hour of day, and its distinct statements by hour."""

    whole: Mapping[str, Any]
    by_hour: Mapping[int, Mapping[str, Any]]
    queries_by_hour: Sequence[int]

    def mean(self, name: str) -> int:
        """Return the mean ``time``, ``hit_time`` or ``miss_time`` in ms, rounded half up, 0 without data."""
        return mean(self.whole[f"{name}_sum"], self.whole[f"{name}_count"])


def read_totals(rollups: Rollups) -> tuple[Totals, int] | None:
    """Return the totals of the merged ``rollups`` of a month and its number of distinct statements.

    Return None if there is no log entry.
    """
    by_hour = {row["hour"]: row for row in rollups.rows(_SUMS)}
    if not by_hour:
        return None
    users = rollups.row(_USERS)["users"] if rollups.is_tenant else 1
    queries_of_hour = {row["hour"]: row["queries"] for row in rollups.rows(_STATEMENTS)}
    *queries_by_hour, queries = (queries_of_hour.get(hour, 0) for hour in range(25))
    return sum_hours(by_hour, users=users, queries_by_hour=queries_by_hour), queries


def sum_hours(
    by_hour: Mapping[int, Mapping[str, Any]], *, users: int, queries_by_hour: Sequence[int]
) -> Totals:
    """Return the totals of a period.

    Args:
        by_hour: the sums of each hour; hours without entries may be left out.
        users, queries_by_hour: distinct counts, which are no sums over hours.
    """
    measured = [row for row in by_hour.values() if row["time_count"]]
    whole = {
        **{name: sum(row[name] for row in by_hour.values()) for name in ADDITIVE},
        "time_min": min((row["time_min"] for row in measured), default=0),
        "time_max": max((row["time_max"] for row in measured), default=0),
        "users": users,
    }
    return Totals(whole, by_hour, queries_by_hour)


def hourly_activity(
    totals: Totals, kind: type[_Activity], *, split_mean: Callable[[int, int], int | None]
) -> list[_Activity]:
    """Return 24 entries by hour of day (UTC).

    Args:
        split_mean: computes the two split averages, including the value for an hour without data.
    """
    without_entries = dict.fromkeys((*ADDITIVE, "users"), 0)
    activity = []
    for hour in range(24):
        row = totals.by_hour.get(hour, without_entries)
        activity.append(
            kind(
                hour=hour,
                queries=totals.queries_by_hour[hour],
                total_hits=row["hits"] + row["misses"],
                cache_hits=row["hits"],
                cache_misses=row["misses"],
                cached_bytes=row["hit_bytes"],
                pass_through_bytes=row["other_bytes"],
                cache_hit_average_response_time=split_mean(row["hit_time_sum"], row["hit_time_count"]),
                cache_miss_average_response_time=split_mean(row["miss_time_sum"], row["miss_time_count"]),
                users=row["users"],
            )
        )
    return activity
