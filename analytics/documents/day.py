"""The daily summary: a record per statement, totals, 24 hours. Contract: "Summary records"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.documents.totals import compute_totals, hourly_activity
from analytics.numbers import iso_time, mean

if TYPE_CHECKING:
    from analytics.source import Rollups

_RECORDS: Final = """
    WITH record AS (
        SELECT statement,
            arg_max_null(cache_key, latest_row) AS cache_key,
            arg_max_null(rule, latest_row) AS rule,
            arg_max_null(latest_status, latest_row) AS status,
            arg_max_null(latest_code, latest_row) AS code,
            arg_max_null(latest_size, latest_row) AS size,
            sum(hits)::BIGINT AS hits,
            sum(misses + bypasses + passthroughs)::BIGINT AS misses,
            sum(time_sum)::HUGEINT AS time_sum,
            sum(time_count)::BIGINT AS time_count,
            sum(entries)::BIGINT AS entries,
            sum(warehouse_sum)::BIGINT AS warehouse_sum,
            min(first_timestamp) AS first_timestamp,
            max(last_timestamp) AS last_timestamp
        FROM groups WHERE statement IS NOT NULL GROUP BY statement
    )
    SELECT record.* REPLACE (lower(hex(statement)) AS statement), sql
    FROM record JOIN statements USING (statement)
    ORDER BY entries DESC, statement
"""


def day_document(rollups: Rollups) -> dict[str, Any]:
    """The daily summary of the one day in ``rollups``; an empty hour has 0 for its split averages."""
    totals = compute_totals(rollups)
    return {
        "queries": [_query_record(row) for row in rollups.rows(_RECORDS)],
        "uniqueUsers": totals.users,
        "cacheHits": totals.hits,
        "cacheMisses": totals.misses,
        "totalHits": totals.hits + totals.misses,
        "cachedBytes": totals.cached_bytes,
        "passThroughBytes": totals.pass_through_bytes,
        "averageResponseTime": totals.average,
        "cacheHitAverageResponseTime": totals.hit_average,
        "cacheMissAverageResponseTime": totals.miss_average,
        "minResponseTime": totals.shortest,
        "maxResponseTime": totals.longest,
        "hourlyActivity": hourly_activity(rollups, split_mean=mean),
    }


def _query_record(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "queryHash": row["statement"],
        "statement": row["sql"],
        "cacheKey": row["cache_key"],
        "matchedRule": row["rule"],
        "cacheStatus": row["status"],
        "cacheHits": row["hits"],
        "cacheMisses": row["misses"],
        "responseCode": row["code"],
        "averageResponseTime": mean(row["time_sum"], row["time_count"]),
        "responseSize": row["size"],
        "count": row["entries"],
        "warehouseExecutionTimeMs": row["warehouse_sum"],
        "firstRequestTime": iso_time(row["first_timestamp"]),
        "lastRequestTime": iso_time(row["last_timestamp"]),
    }
