"""A day's Parquet file to the rollups from which every summary is derived. Contract: "Summary records".

Four tables, all exact; no summary reads raw rows again:

- ``users``: user x statement x rule x cache key, sorted by user, so that one user's rows stand together;
- ``groups``: the same without the user, for the tenant's own documents;
- ``hours``: hour x user, with additive sums;
- ``statements``: the text of each statement, by its MD5.

A 24-bit ``hour_mask`` says in which hours a group occurred, which keeps distinct counts per hour exact.
``latest_*`` are those of the group's latest entry, the one with the highest ``latest_row``.
"""

# Statements are put together from constants, numbers and quoted paths.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from logs.compaction.engine import HOUR_COLUMN, text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from duckdb import DuckDBPyConnection

#: Raise it when the rollups' columns or meaning change: every day's are made anew.
ROLLUP_VERSION: Final = 1

USERS: Final = "users"
GROUPS: Final = "groups"
HOURS: Final = "hours"
STATEMENTS: Final = "statements"
TABLES: Final = (USERS, GROUPS, HOURS, STATEMENTS)

#: Sums of 64-bit values: wide enough for any of them, and a type that Parquet keeps exactly.
_WIDE: Final = "DECIMAL(38, 0)"

_GROUP_KEYS: Final = "statement, rule, cache_key"

_LATEST: Final = {
    "latest_timestamp": "coalesce(timestamp, 0)",
    "latest_log_id": "coalesce(logId, '')",
    "latest_status": "cacheStatus",
    "latest_code": "statusCode",
    "latest_size": "responseSize",
    "latest_rule_name": "matchedRuleName",
}

_MEASURES: Final = f"""
    count(*) AS entries,
    count(*) FILTER (cacheStatus = 'HIT') AS hits,
    count(*) FILTER (cacheStatus = 'MISS') AS misses,
    count(*) FILTER (cacheStatus = 'BYPASS') AS bypasses,
    count(*) FILTER (cacheStatus = 'PASSTHROUGH') AS passthroughs,
    sum(responseTimeMs) FILTER (responseTimeMs > 0)::{_WIDE} AS time_sum,
    count(*) FILTER (responseTimeMs > 0) AS time_count,
    sum(warehouseExecutionTimeMs)::BIGINT AS warehouse_sum,
    sum(warehouseExecutionTimeMs) FILTER (cacheStatus = 'MISS')::BIGINT AS miss_warehouse_sum,
    count(warehouseExecutionTimeMs) FILTER (cacheStatus = 'MISS') AS miss_warehouse_count,
    sum(warehouseExecutionTimeMs) FILTER (cacheStatus IN ('BYPASS', 'PASSTHROUGH'))::BIGINT
        AS uncached_warehouse_sum,
    min(timestamp) AS first_timestamp,
    max(timestamp) AS last_timestamp,
    bit_or(1::INTEGER << {HOUR_COLUMN}::INTEGER) AS hour_mask,
    max(file_row_number) FILTER (cacheStatus = 'MISS' AND cacheKey IS NOT NULL) AS stored_row,
    arg_max(greatest(responseSize, 0), file_row_number)
        FILTER (cacheStatus = 'MISS' AND cacheKey IS NOT NULL) AS stored_size,
    max(file_row_number) AS latest_row,
    {", ".join(f"arg_max_null({sql}, file_row_number) AS {name}" for name, sql in _LATEST.items())}
"""

_MERGED_MEASURES: Final = f"""
    sum(entries)::BIGINT AS entries,
    sum(hits)::BIGINT AS hits,
    sum(misses)::BIGINT AS misses,
    sum(bypasses)::BIGINT AS bypasses,
    sum(passthroughs)::BIGINT AS passthroughs,
    sum(time_sum)::{_WIDE} AS time_sum,
    sum(time_count)::BIGINT AS time_count,
    sum(warehouse_sum)::BIGINT AS warehouse_sum,
    sum(miss_warehouse_sum)::BIGINT AS miss_warehouse_sum,
    sum(miss_warehouse_count)::BIGINT AS miss_warehouse_count,
    sum(uncached_warehouse_sum)::BIGINT AS uncached_warehouse_sum,
    min(first_timestamp) AS first_timestamp,
    max(last_timestamp) AS last_timestamp,
    bit_or(hour_mask) AS hour_mask,
    max(stored_row) AS stored_row,
    arg_max(stored_size, stored_row) AS stored_size,
    {", ".join(f"arg_max_null({name}, latest_row) AS {name}" for name in _LATEST)},
    max(latest_row) AS latest_row
"""

_COUNTED_MISS: Final = "cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')"

_HOUR_MEASURES: Final = f"""
    count(*) AS entries,
    count(*) FILTER (cacheStatus = 'HIT') AS hits,
    count(*) FILTER ({_COUNTED_MISS}) AS misses,
    sum(responseSize) FILTER (responseSize > 0 AND cacheStatus = 'HIT')::{_WIDE} AS hit_bytes,
    sum(responseSize) FILTER (responseSize > 0 AND cacheStatus IS DISTINCT FROM 'HIT')::{_WIDE}
        AS other_bytes,
    sum(responseTimeMs) FILTER (responseTimeMs > 0)::{_WIDE} AS time_sum,
    count(*) FILTER (responseTimeMs > 0) AS time_count,
    min(responseTimeMs) FILTER (responseTimeMs > 0) AS time_min,
    max(responseTimeMs) FILTER (responseTimeMs > 0) AS time_max,
    sum(responseTimeMs) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT')::{_WIDE} AS hit_time_sum,
    count(*) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT') AS hit_time_count,
    sum(responseTimeMs) FILTER (responseTimeMs > 0 AND {_COUNTED_MISS})::{_WIDE} AS miss_time_sum,
    count(*) FILTER (responseTimeMs > 0 AND {_COUNTED_MISS}) AS miss_time_count
"""

_QUERIES: Final = {
    USERS: f"""
        SELECT userName AS user_name, unhex(md5(standardizedSql)) AS statement, matchedRule AS rule,
            cacheKey AS cache_key, {_MEASURES}
        FROM log GROUP BY ALL ORDER BY user_name NULLS FIRST, {_GROUP_KEYS}
    """,
    GROUPS: f"SELECT {_GROUP_KEYS}, {_MERGED_MEASURES} FROM users GROUP BY ALL ORDER BY {_GROUP_KEYS}",
    HOURS: f"""
        SELECT {HOUR_COLUMN} AS hour, userName AS user_name, {_HOUR_MEASURES}
        FROM log GROUP BY ALL ORDER BY user_name NULLS FIRST, hour
    """,
    STATEMENTS: """
        SELECT unhex(md5(standardizedSql)) AS statement, any_value(standardizedSql) AS sql
        FROM log WHERE standardizedSql IS NOT NULL GROUP BY ALL ORDER BY statement
    """,
}

#: Smaller than a log file's, so that one user's rows are found without reading the others'.
_OPTIONS: Final = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3, ROW_GROUP_SIZE 8192"


def write_rollups(connection: DuckDBPyConnection, *, log: Path, directory: Path) -> Mapping[str, Path]:
    """Roll the day's file ``log`` up into ``directory``: one Parquet file per name in `TABLES`."""
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW log AS FROM read_parquet({text(log)}, file_row_number = true)"
    )
    # `groups` is made from `users`, not from the rows again.
    connection.execute(f"CREATE OR REPLACE TEMP TABLE users AS {_QUERIES[USERS]}")
    targets = {table: directory / f"{table}.parquet" for table in TABLES}
    for table, target in targets.items():
        query = "FROM users" if table == USERS else _QUERIES[table]
        connection.execute(f"COPY ({query}) TO {text(target)} ({_OPTIONS})")
    connection.execute("DROP TABLE users; DROP VIEW log")
    return targets
