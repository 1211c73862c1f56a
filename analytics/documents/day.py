"""The daily summary: a record per statement, totals, 24 hours. Contract: "Summary records"."""

# Statements are put together from constants.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.documents.totals import averages, hourly_activity, read_totals
from analytics.encoding import encode_document
from analytics.numbers import FIRST_MS, LAST_MS, mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.source import Rollups

#: Records that are held at a time.
_BATCH: Final = 128


def _iso_time(column: str) -> str:
    return (
        f"CASE WHEN {column} BETWEEN {FIRST_MS} AND {LAST_MS} "
        f"THEN strftime(make_timestamp_ms({column}), '%Y-%m-%dT%H:%M:%S.%gZ') END"
    )


#: The engine writes each record: a day has tens of thousands, and 14 Python objects for each take longer.
_RECORD: Final = f"""
    to_json(struct_pack(
        "queryHash" := replace(statement::VARCHAR, '-', ''),
        "statement" := sql,
        "cacheKey" := latest_cache_key,
        "matchedRule" := latest_rule,
        "cacheStatus" := latest_status,
        "cacheHits" := hits,
        "cacheMisses" := misses + bypasses + passthroughs,
        "responseCode" := latest_code,
        "averageResponseTime" := coalesce(
            (2 * time_sum::HUGEINT + time_count) // (2 * nullif(time_count, 0)), 0
        )::BIGINT,
        "responseSize" := latest_size,
        "count" := entries,
        "warehouseExecutionTimeMs" := warehouse_sum,
        "firstRequestTime" := {_iso_time("first_timestamp")},
        "lastRequestTime" := {_iso_time("last_timestamp")}
    ))::VARCHAR
"""

#: The table stands in the document's order.
_RECORDS: Final = f"SELECT {_RECORD} FROM <statements>"
_RECORDS_OF_USER: Final = f"""
    SELECT {_RECORD} FROM <statements> AS own JOIN (SELECT statement, sql FROM <texts>) USING (statement)
    ORDER BY entries DESC, statement
"""


def day_document(rollups: Rollups) -> Iterator[bytes]:
    """The daily summary of the day in ``rollups`` as it goes out, in pieces; none where it has no entry.

    An empty hour has 0 for its split averages. One piece is held at a time, however many there are.
    """
    totals = read_totals(rollups)
    if totals.is_empty:
        return
    yield b'{"queries":['
    separator = ""
    for records in rollups.batches(_RECORDS if rollups.is_tenant else _RECORDS_OF_USER, size=_BATCH):
        yield (separator + ",".join(records)).encode()
        separator = ","
    whole = totals.whole
    rest = {
        "uniqueUsers": whole["users"],
        "cacheHits": whole["hits"],
        "cacheMisses": whole["misses"],
        "totalHits": whole["hits"] + whole["misses"],
        "cachedBytes": whole["hit_bytes"],
        "passThroughBytes": whole["other_bytes"],
        **averages(totals),
        "hourlyActivity": hourly_activity(totals, split_mean=mean),
    }
    yield b"]," + encode_document(rest)[1:]
