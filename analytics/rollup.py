"""A day's Parquet file to the rollups from which every summary is derived. Contract: "Summary records".

Five tables, all exact; no summary reads raw rows again. Days merge into months and months into years
(`analytics.merge`), which have the same tables with fewer columns:

- ``statements``: one row per statement, in the order of the daily document, with its text;
- ``users``: user x statement, sorted by user, so that one user's rows stand together;
- ``rules``: rule x statement;
- ``hours``: hour x user, with additive sums;
- ``activity``: user x day, and for the tenant as a whole (``user_name`` null) the day.

A statement is its MD5 as a UUID, which engines compare as one number. A 24-bit ``hour_mask`` says in which
hours a group occurred, which keeps distinct counts per hour exact. ``latest_*`` are those of the group's
latest entry; ``latest_timestamp``, ``latest_log_id``, ``latest_day`` and, within a day, ``latest_row``
decide which it is (`LATEST_ORDER`).
"""

# Statements are put together from constants, numbers and quoted paths.
# ruff: noqa: S608

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from logs.compaction.engine import HOUR_COLUMN, text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from pathlib import Path

    from duckdb import DuckDBPyConnection

#: Raise it when the rollups' columns or meaning change: every day's are made anew.
ROLLUP_VERSION: Final = 2

STATEMENTS: Final = "statements"
USERS: Final = "users"
RULES: Final = "rules"
HOURS: Final = "hours"
ACTIVITY: Final = "activity"
TABLES: Final = (STATEMENTS, USERS, RULES, HOURS, ACTIVITY)

#: Small row groups, so that one user's rows are found without reading the others'. Level 3 of zstd takes a
#: quarter more time for the same bytes.
ROLLUP_OPTIONS: Final = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 8192"

#: Sums of 64-bit values: wide enough for any of them, and a type that Parquet keeps exactly.
WIDE: Final = "DECIMAL(38, 0)"

#: Orders latest entries. Of those equal in time and logId the first by object key counts: that of the earlier
#: day, and in one day that of the higher row.
LATEST_ORDER: Final = "row(latest_timestamp, latest_log_id, DATE '1970-01-01' - latest_day, latest_row)"

_COUNTED_MISS: Final = "cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')"
_STORED: Final = "cacheStatus = 'MISS' AND cacheKey IS NOT NULL"

#: The one pass over the log that needs its wide columns.
_ASKED_TEXTS: Final = f"""
    SELECT userName AS user_name, standardizedSql AS sql, matchedRule AS rule,
        count(*) AS entries,
        count(*) FILTER (cacheStatus = 'HIT') AS hits,
        count(*) FILTER (cacheStatus = 'MISS') AS misses,
        count(*) FILTER (cacheStatus = 'BYPASS') AS bypasses,
        count(*) FILTER (cacheStatus = 'PASSTHROUGH') AS passthroughs,
        sum(responseTimeMs) FILTER (responseTimeMs > 0) AS time_sum,
        count(*) FILTER (responseTimeMs > 0) AS time_count,
        sum(warehouseExecutionTimeMs) AS warehouse_sum,
        sum(warehouseExecutionTimeMs) FILTER (cacheStatus = 'MISS') AS miss_warehouse_sum,
        count(warehouseExecutionTimeMs) FILTER (cacheStatus = 'MISS') AS miss_warehouse_count,
        sum(warehouseExecutionTimeMs) FILTER (cacheStatus IN ('BYPASS', 'PASSTHROUGH'))
            AS uncached_warehouse_sum,
        min(timestamp) AS first_timestamp,
        max(timestamp) AS last_timestamp,
        bit_or(1::INTEGER << {HOUR_COLUMN}::INTEGER) AS hour_mask,
        bool_or({_STORED}) IS TRUE AS is_stored,
        max(file_row_number) AS latest_row
    FROM log GROUP BY ALL
"""

_TEXTS: Final = """
    SELECT sql, md5(sql)::UUID AS statement
    FROM (SELECT DISTINCT sql FROM asked_texts WHERE sql IS NOT NULL)
"""

#: Three tables are made from it, none of which has to look at texts again.
_ASKED: Final = """
    SELECT asked_texts.* EXCLUDE (sql), statement FROM asked_texts LEFT JOIN texts USING (sql)
"""

#: Rows of a log file stand in the order that decides which is the latest.
_LATEST: Final = """
    SELECT file_row_number AS latest_row, coalesce(timestamp, 0) AS latest_timestamp,
        coalesce(logId, '') AS latest_log_id, cacheKey AS latest_cache_key, matchedRule AS latest_rule,
        matchedRuleName AS latest_rule_name, cacheStatus AS latest_status, statusCode AS latest_code,
        responseSize AS latest_size
    FROM log SEMI JOIN asked ON asked.latest_row = log.file_row_number
"""

#: The last MISS of each cache key, of each user and of the day.
_KEPT: Final = f"""
    SELECT userName AS user_name, cacheKey AS cache_key, max(file_row_number) AS stored_row,
        arg_max(greatest(responseSize, 0), file_row_number) AS stored_size
    FROM log WHERE {_STORED} GROUP BY ALL
"""

_MEASURES: Final = f"""
    sum(entries)::BIGINT AS entries,
    sum(hits)::BIGINT AS hits,
    sum(misses)::BIGINT AS misses,
    sum(bypasses)::BIGINT AS bypasses,
    sum(passthroughs)::BIGINT AS passthroughs,
    sum(time_sum)::{WIDE} AS time_sum,
    sum(time_count)::BIGINT AS time_count,
    sum(warehouse_sum)::BIGINT AS warehouse_sum,
    sum(uncached_warehouse_sum)::BIGINT AS uncached_warehouse_sum,
    min(first_timestamp) AS first_timestamp,
    max(last_timestamp) AS last_timestamp,
    bit_or(hour_mask) AS hour_mask,
    sum(hits) > 0 OR bool_or(is_stored) AS is_kept,
    max(latest_row) AS latest_row
"""

_HOURS: Final = f"""
    SELECT {HOUR_COLUMN} AS hour, userName AS user_name,
        count(*) AS entries,
        count(*) FILTER (cacheStatus = 'HIT') AS hits,
        count(*) FILTER ({_COUNTED_MISS}) AS misses,
        sum(responseSize) FILTER (responseSize > 0 AND cacheStatus = 'HIT')::{WIDE} AS hit_bytes,
        sum(responseSize) FILTER (responseSize > 0 AND cacheStatus IS DISTINCT FROM 'HIT')::{WIDE}
            AS other_bytes,
        sum(responseTimeMs) FILTER (responseTimeMs > 0)::{WIDE} AS time_sum,
        count(*) FILTER (responseTimeMs > 0) AS time_count,
        min(responseTimeMs) FILTER (responseTimeMs > 0) AS time_min,
        max(responseTimeMs) FILTER (responseTimeMs > 0) AS time_max,
        sum(responseTimeMs) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT')::{WIDE} AS hit_time_sum,
        count(*) FILTER (responseTimeMs > 0 AND cacheStatus = 'HIT') AS hit_time_count,
        sum(responseTimeMs) FILTER (responseTimeMs > 0 AND {_COUNTED_MISS})::{WIDE} AS miss_time_sum,
        count(*) FILTER (responseTimeMs > 0 AND {_COUNTED_MISS}) AS miss_time_count
    FROM log GROUP BY ALL
"""

_SERVED: Final = f"""
    sum(hits)::BIGINT AS hits,
    sum(hits + misses)::BIGINT AS total,
    sum(hit_bytes)::{WIDE} AS hit_bytes,
    sum(time_sum)::{WIDE} AS time_sum,
    sum(time_count)::BIGINT AS time_count,
    min(time_min) AS time_min,
    max(time_max) AS time_max
"""

_STORED_SUMS: Final = f"count(*) AS stored_elements, sum(stored_size)::{WIDE} AS stored_size"

_ACTIVITY_COLUMNS: Final = f"""
    coalesce(queries, 0) AS queries, hits, total, hit_bytes, time_sum, time_count, time_min, time_max,
    coalesce(stored_elements, 0) AS stored_elements, coalesce(stored_size, 0)::{WIDE} AS stored_size
"""

#: Each table's rows, from those of `_STEPS`; ``$day`` is the day as a DATE.
_QUERIES: Final = {
    STATEMENTS: f"""
        WITH own AS (
            SELECT statement, {_MEASURES} FROM asked WHERE statement IS NOT NULL GROUP BY statement
        )
        SELECT sql, own.*, latest_timestamp, latest_log_id, $day AS latest_day,
            latest_cache_key, latest_rule, latest_status, latest_code, latest_size
        FROM own JOIN texts USING (statement) JOIN latest USING (latest_row)
        ORDER BY entries DESC, statement
    """,
    USERS: f"""
        WITH own AS (
            SELECT user_name, statement, {_MEASURES} FROM asked
            WHERE user_name IS NOT NULL AND statement IS NOT NULL GROUP BY user_name, statement
        )
        SELECT own.* EXCLUDE (latest_row, uncached_warehouse_sum),
            latest_cache_key, latest_rule, latest_status, latest_code, latest_size
        FROM own JOIN latest USING (latest_row)
        ORDER BY user_name
    """,
    RULES: """
        WITH own AS (
            SELECT rule, statement, sum(hits)::BIGINT AS hits,
                sum(misses + bypasses + passthroughs)::BIGINT AS misses,
                sum(miss_warehouse_sum)::BIGINT AS miss_warehouse_sum,
                sum(miss_warehouse_count)::BIGINT AS miss_warehouse_count,
                max(latest_row) AS latest_row
            FROM asked WHERE rule IS NOT NULL GROUP BY rule, statement
        )
        SELECT own.*, latest_timestamp, latest_log_id, $day AS latest_day, latest_rule_name
        FROM own JOIN latest USING (latest_row)
        ORDER BY rule, statement
    """,
    HOURS: "FROM hours ORDER BY user_name NULLS FIRST, hour",
    ACTIVITY: f"""
        WITH served AS (
            SELECT user_name, {_SERVED} FROM hours WHERE user_name IS NOT NULL GROUP BY user_name
        ),
        asked_by AS (
            SELECT user_name, count(DISTINCT statement) AS queries FROM asked GROUP BY user_name
        ),
        stored_by AS (SELECT user_name, {_STORED_SUMS} FROM kept GROUP BY user_name),
        whole AS (SELECT count(DISTINCT user_name) AS users, {_SERVED} FROM hours),
        all_asked AS (SELECT count(*) AS queries FROM texts),
        all_stored AS (
            SELECT {_STORED_SUMS} FROM (
                SELECT arg_max(stored_size, stored_row) AS stored_size FROM kept GROUP BY cache_key
            )
        )
        SELECT NULL::VARCHAR AS user_name, $day AS day, users, {_ACTIVITY_COLUMNS}
        FROM whole, all_asked, all_stored
        UNION ALL
        (SELECT user_name, $day AS day, 1 AS users, {_ACTIVITY_COLUMNS}
        FROM served LEFT JOIN asked_by USING (user_name) LEFT JOIN stored_by USING (user_name)
        ORDER BY user_name)
    """,
}


#: What the tables are made from, each from those before.
_STEPS: Final = {
    "asked_texts": _ASKED_TEXTS,
    "texts": _TEXTS,
    "asked": _ASKED,
    "latest": _LATEST,
    "kept": _KEPT,
    "hours": _HOURS,
}
#: A day's tables are too small for the engine to write one with several threads. The largest stands first.
_ORDER: Final = (USERS, STATEMENTS, RULES, ACTIVITY, HOURS)
_THREADS: Final = 2


def write_rollups(
    connection: DuckDBPyConnection, *, log: Path, day: date, directory: Path
) -> Mapping[str, Path]:
    """Roll the day's file ``log`` up into ``directory``: one Parquet file per name in `TABLES`.

    Tables of the names in `_STEPS` come and go in the connection's database.
    """
    connection.execute(f"CREATE VIEW log AS FROM read_parquet({text(log)}, file_row_number = true)")
    for name, query in _STEPS.items():
        connection.execute(f"CREATE TABLE {name} AS {query}")
    targets = {table: directory / f"{table}.parquet" for table in _ORDER}

    def write(table: str) -> None:
        query = _QUERIES[table].replace("$day", f"DATE '{day.isoformat()}'")
        with connection.cursor() as own:
            own.execute(f"COPY ({query}) TO {text(targets[table])} ({ROLLUP_OPTIONS})")

    with ThreadPoolExecutor(_THREADS) as pool:
        for written in [pool.submit(write, table) for table in _ORDER]:
            written.result()
    connection.execute("".join(f"DROP TABLE {name};" for name in _STEPS) + "DROP VIEW log")
    return targets
