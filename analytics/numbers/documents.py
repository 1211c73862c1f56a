"""The summaries of days and months. Contract: "Summary records"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta

from analytics.numbers.tables import FIRST_MS, LAST_MS, Array, DayTables, group, mean, mean_or_none
from logs.columns import CACHE_STATUSES
from logs.definitions import MISS
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp

if TYPE_CHECKING:
    from analytics.numbers.merged import Rollups


#: Sums over hours and users.
ADDITIVE: Final = (
    "hits", "misses", "hit_bytes", "other_bytes", "time_sum", "time_count",
    "hit_time_sum", "hit_time_count", "miss_time_sum", "miss_time_count",
)  # fmt: skip
#: The source has one row per hour of day and user. Wide sums are DECIMAL; as HUGEINT they become Python ints.
_HOUR_SUMS: Final = f"""
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
    by_hour = {row["hour"]: row for row in rollups.rows(_HOUR_SUMS)}
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


#: The number of records to encode at a time.
_BATCH: Final = 256


# The fields are given by position, which is faster.
class QueryRecord(JsonStruct, kw_only=False):
    """One statement on one day: a rollup, with a sample of its latest execution."""

    query_hash: Annotated[str, Meta(description="MD5 of the standardized SQL, lower-case hex.")]
    statement: str
    cache_key: str | None
    matched_rule: str | None
    cache_status: Annotated[
        Annotated[str, one_of(CACHE_STATUSES)] | None,
        Meta(
            description="Of the latest execution. A value outside the twelve statuses is shown as it was "
            "logged."
        ),
    ]
    cache_hits: Count
    cache_misses: Annotated[Count, Meta(description=f"{' + '.join(MISS)}.")]
    response_code: int | None
    average_response_time: Count
    response_size: int
    count: Count
    warehouse_execution_time_ms: Annotated[
        int | None, Meta(description="Null if no execution reached the warehouse.")
    ]
    first_request_time: Timestamp | None
    last_request_time: Timestamp | None


class DailySummary(JsonStruct):
    """The requests of one day (UTC). Times in ms, sizes in bytes."""

    queries: list[QueryRecord]
    unique_users: Count
    cache_hits: Count
    cache_misses: Count | None = None
    total_hits: Count
    cached_bytes: Count | None = None
    pass_through_bytes: Count | None = None
    average_response_time: Count
    cache_hit_average_response_time: Count | None = None
    cache_miss_average_response_time: Count | None = None
    min_response_time: Count
    max_response_time: Count
    hourly_activity: list[HourActivity]


#: The beginning of the document: `DailySummary.queries` is its first field.
_QUERIES: Final = b'{"queries":['
_RECORD_COLUMNS: Final = (
    "statement", "latest_cache_key", "latest_rule", "latest_status", "hits", "misses", "bypasses",
    "passthroughs", "latest_code", "time_mean", "latest_size", "entries", "warehouse_sum",
    "first_timestamp", "last_timestamp", "hour_mask",
)  # fmt: skip
_DAY_SUMS: Final = {
    **{name: (name, "sum") for name in ADDITIVE},
    "time_min": ("time_min", "min"),
    "time_max": ("time_max", "max"),
    "users": ("user_name", "count"),
}
#: The bit of each hour in a mask, as Arrow scalars, so that calls need not convert Python integers again.
_BITS: Final = [pa.scalar(1 << hour) for hour in range(24)]
_encode = msgspec.json.Encoder().encode


def day_document(day: DayTables) -> Iterator[bytes]:
    """Yield the daily summary as JSON, in pieces. Yield nothing if there is no log entry.

    An hour without entries has 0 for its split averages. Memory holds the texts of only a few records at a
    time.
    """
    by_hour, users = _hours(day)
    if not by_hour:
        return
    masks: list[Array] = []
    yield _QUERIES
    separator = b""
    for table in day.statements(_RECORD_COLUMNS):
        masks += table["hour_mask"].chunks
        columns = _columns(table)
        for start in range(0, table.num_rows, _BATCH):
            yield separator + _encode(_records(columns.slice(start, _BATCH)))[1:-1]
            separator = b","
    totals = sum_hours(by_hour, users=users, queries_by_hour=_count_hours(masks))
    whole = totals.whole
    summary = DailySummary(
        queries=[],
        unique_users=whole["users"],
        cache_hits=whole["hits"],
        cache_misses=whole["misses"],
        total_hits=whole["hits"] + whole["misses"],
        cached_bytes=whole["hit_bytes"],
        pass_through_bytes=whole["other_bytes"],
        average_response_time=totals.mean("time"),
        cache_hit_average_response_time=totals.mean("hit_time"),
        cache_miss_average_response_time=totals.mean("miss_time"),
        min_response_time=whole["time_min"],
        max_response_time=whole["time_max"],
        hourly_activity=hourly_activity(totals, HourActivity, split_mean=mean),
    )
    yield _encode(summary).removeprefix(_QUERIES)


def _hours(day: DayTables) -> tuple[dict[int, dict[str, int]], int]:
    """Return the sums of each hour that has entries, and the number of users with entries."""
    hours = day.hours(["hour", *ADDITIVE, "time_min", "time_max"])
    if day.user is None:
        users = pc.count_distinct(hours["user_name"]).as_py()
        rows = group(hours, ("hour",), _DAY_SUMS).to_pylist()
    else:
        users = 1
        rows = [{**row, "users": users} for row in hours.to_pylist()]
    return {row["hour"]: {name: int(row[name] or 0) for name in _DAY_SUMS} for row in rows}, users


def _count_hours(masks: list[Array]) -> list[int]:
    """Return for each of the 24 hours the number of masks that have its bit."""
    column = pa.chunked_array(masks, pa.int32()).combine_chunks().cast(pa.int64())
    return [(pc.sum(pc.bit_wise_and(column, bit)).as_py() or 0) >> hour for hour, bit in enumerate(_BITS)]


def _columns(table: pa.Table) -> pa.Table:
    """Return the columns of the records. The query hash is still binary (16 bytes)."""
    misses = pc.add(pc.add(table["misses"], table["bypasses"]), table["passthroughs"])
    statement: Array = table["statement"].combine_chunks()
    columns: list[Array] = [
        statement.storage,
        *(table[name] for name in ("sql", "latest_cache_key", "latest_rule", "latest_status", "hits")),
        misses,
        *(table[name] for name in ("latest_code", "time_mean", "latest_size", "entries", "warehouse_sum")),
        _iso_times(table["first_timestamp"]),
        _iso_times(table["last_timestamp"]),
    ]
    return pa.table(columns, names=list(QueryRecord.__struct_fields__))


def _records(columns: pa.Table) -> list[QueryRecord]:
    digests: list[Any]
    digests, *others = (column.to_pylist() for column in columns.columns)
    return list(map(QueryRecord, [digest.hex() for digest in digests], *others))


def _iso_times(column: Array) -> Array:
    """Convert epoch milliseconds to ISO 8601; to null outside of the years 0001 to 9999."""
    is_in_range = pc.and_(pc.greater_equal(column, FIRST_MS), pc.less_equal(column, LAST_MS))
    times = pc.if_else(is_in_range, column, None).cast(pa.timestamp("ms"))
    # Arrow writes "2026-03-01 00:00:00.000". Writing a time zone as well would take ten times as long.
    text = pc.replace_substring(times.cast(pa.string()), " ", "T")
    return pc.binary_join_element_wise(text, "Z", "")


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
