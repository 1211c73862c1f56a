"""Merge the rollups of days into a month, and of months into a year.

Merged rollups have the same tables with fewer columns, and all counts are exact. A document of a month or a
year reads one file per table. Merging is associative: months and days give the same year.
"""

# Queries consist of constants and quoted paths.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.summaries.rollup_schema import ACTIVITY, HOURS, LATEST_ORDER, RULES, STATEMENTS, TABLES, USERS
from logs.quoting import quote_text, quote_texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from duckdb import DuckDBPyConnection

#: Row groups are small, so that a user's rows are read without many others. Level 3 of zstd takes a quarter
#: more time for the same bytes.
MERGED_OPTIONS: Final = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 8192"

#: The type of sums of 64-bit values. They always fit, and Parquet stores the type exactly.
WIDE: Final = "DECIMAL(38, 0)"


def _latest(value: str) -> str:
    """Return SQL for the columns that identify the latest entry of a group, and its ``value``."""
    names = ("latest_timestamp", "latest_log_id", "latest_day", "latest_row", value)
    fields = ", ".join(f"{name} := {name}" for name in names)
    return f"unnest(arg_max(struct_pack({fields}), {LATEST_ORDER}))"


_QUERIES: Final = {
    STATEMENTS: f"""
        SELECT statement,
            sum(hits)::BIGINT AS hits,
            sum(misses)::BIGINT AS misses,
            sum(bypasses)::BIGINT AS bypasses,
            sum(passthroughs)::BIGINT AS passthroughs,
            sum(warehouse_sum)::BIGINT AS warehouse_sum,
            sum(uncached_warehouse_sum)::BIGINT AS uncached_warehouse_sum,
            bit_or(hour_mask) AS hour_mask,
            bool_or(is_kept) AS is_kept,
            {_latest("latest_rule")}
        FROM source GROUP BY statement ORDER BY statement
    """,
    USERS: """
        SELECT user_name, statement, bit_or(hour_mask) AS hour_mask, bool_or(is_kept) AS is_kept
        FROM source GROUP BY user_name, statement ORDER BY user_name
    """,
    RULES: f"""
        SELECT rule, statement,
            sum(entries)::BIGINT AS entries,
            sum(hits)::BIGINT AS hits,
            sum(misses)::BIGINT AS misses,
            sum(not_cached)::BIGINT AS not_cached,
            sum(miss_warehouse_sum)::BIGINT AS miss_warehouse_sum,
            sum(miss_warehouse_count)::BIGINT AS miss_warehouse_count,
            {_latest("latest_rule_name")}
        FROM source GROUP BY rule, statement ORDER BY rule
    """,
    HOURS: f"""
        SELECT hour, user_name,
            sum(entries)::BIGINT AS entries,
            sum(hits)::BIGINT AS hits,
            sum(misses)::BIGINT AS misses,
            sum(hit_bytes)::{WIDE} AS hit_bytes,
            sum(other_bytes)::{WIDE} AS other_bytes,
            sum(time_sum)::{WIDE} AS time_sum,
            sum(time_count)::BIGINT AS time_count,
            min(time_min) AS time_min,
            max(time_max) AS time_max,
            sum(hit_time_sum)::{WIDE} AS hit_time_sum,
            sum(hit_time_count)::BIGINT AS hit_time_count,
            sum(miss_time_sum)::{WIDE} AS miss_time_sum,
            sum(miss_time_count)::BIGINT AS miss_time_count
        FROM source GROUP BY hour, user_name ORDER BY user_name NULLS FIRST, hour
    """,
    ACTIVITY: "FROM source ORDER BY user_name NULLS FIRST, day",
}


def merge_rollups(
    connection: DuckDBPyConnection, parts: Sequence[Mapping[str, str]], *, directory: Path
) -> Mapping[str, Path]:
    """Merge rollups into ``directory``: one Parquet file for each table in `TABLES`.

    Args:
        parts: for each day or month, the address of the file of each table. At least one part.
    """
    targets = {table: directory / f"{table}.parquet" for table in TABLES}
    for table, target in targets.items():
        source = f"read_parquet({quote_texts(part[table] for part in parts)}, hive_partitioning = false)"
        query = _QUERIES[table].replace("FROM source", f"FROM {source}")
        connection.execute(f"COPY ({query}) TO {quote_text(target)} ({MERGED_OPTIONS})")
    return targets
