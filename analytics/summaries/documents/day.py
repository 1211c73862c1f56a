"""The daily summary: a record per statement, totals, and 24 hours. Contract: "Summary records"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta

from analytics.summaries.documents.totals import ADDITIVE, HourActivity, hourly_activity, sum_hours
from analytics.summaries.grouping import group
from analytics.summaries.numbers import FIRST_MS, LAST_MS, mean
from logs.columns import CACHE_STATUSES
from logs.definitions import MISS
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.summaries.day_tables import DayTables
    from analytics.summaries.grouping import Array

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
_SUMS: Final = {
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
        rows = group(hours, ("hour",), _SUMS).to_pylist()
    else:
        users = 1
        rows = [{**row, "users": users} for row in hours.to_pylist()]
    return {row["hour"]: {name: int(row[name] or 0) for name in _SUMS} for row in rows}, users


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
