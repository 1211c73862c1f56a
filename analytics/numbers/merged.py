"""Months, years and the history: their names, and the rollups that days merge into.

A period is a text: ``2026-03-01``, ``2026-03``, ``2026``, or empty for the whole history. Merged rollups have
the same tables as days with fewer columns, and all counts are exact. A document of a month or a year reads
one file per table. Merging is associative: months and days give the same year.
"""

# Queries consist of constants and quoted paths.
# ruff: noqa: S608

from __future__ import annotations

import hashlib
from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analytics.numbers.tables import (
    ACTIVITY,
    HOURS,
    LATEST_ORDER,
    REQUEST_SUM,
    ROLLUP_VERSION,
    RULES,
    STATEMENTS,
    TABLES,
    USERS,
)
from logs.quoting import quote_text, quote_texts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


HISTORY: Final = ""


@dataclass(frozen=True, slots=True)
class DayBuild:
    """The current build of a day's rollups.

    Attributes:
        files: table names to object keys.
        is_outdated: another version of the service made the files, and this one cannot merge them.
    """

    day: date
    build: str
    files: Mapping[str, str] = field(default_factory=dict)
    is_outdated: bool = False


def month_of(day: date) -> str:
    """Return the month of ``day``, such as ``2026-03``."""
    return day.isoformat()[: len("2026-03")]


def year_of(day: date) -> str:
    """Return the year of ``day``, such as ``2026``."""
    return day.isoformat()[: len("2026")]


def periods_of(days: Iterable[date]) -> list[str]:
    """Return the months of ``days``, then the years, then the history; nothing without days."""
    days = list(days)
    months = sorted({month_of(day) for day in days})
    years = sorted({year_of(day) for day in days})
    return [*months, *years, *([HISTORY] if days else [])]


def waiting_periods(builds: Iterable[DayBuild]) -> set[str]:
    """Return the periods with outdated days, which must be rolled up again first."""
    return periods_showing(item.day for item in builds if item.is_outdated)


def periods_showing(days: Iterable[date]) -> set[str]:
    """Return the periods whose documents show any of ``days``: months, years and the history.

    They include the year after a day, because its 365 days of activity may include the day.
    """
    days = list(days)
    return {*periods_of(days), *(f"{min(day.year + 1, date.max.year):04}" for day in days)}


def parts_of(period: str, days: Iterable[date]) -> list[str]:
    """Return, in order, the months of a year or the years of the history that contain any of ``days``."""
    own = [day for day in days if is_in_period(day, period)]
    return sorted({year_of(day) if period == HISTORY else month_of(day) for day in own})


def is_month(period: str) -> bool:
    """Return True if ``period`` is a month."""
    return len(period) == len("2026-03")


def is_year(period: str) -> bool:
    """Return True if ``period`` is a year."""
    return len(period) == len("2026")


def year_before(year: str) -> str:
    """Return the year before ``year``; for year 1, return year 1."""
    return f"{max(int(year) - 1, 1):04}"


def is_in_period(day: date, period: str) -> bool:
    """Return True if ``day`` is in ``period``."""
    return day.isoformat().startswith(period)


def merged_digest(period: str, builds: Iterable[DayBuild]) -> str:
    """Return a digest over the builds of the days in ``period``. ``builds`` are sorted by day."""
    digest = hashlib.sha256(f"{ROLLUP_VERSION}\n".encode())
    for item in builds:
        if is_in_period(item.day, period):
            digest.update(f"{item.day} {item.build}\n".encode())
    return digest.hexdigest()


def source_digest(period: str, builds: Sequence[DayBuild]) -> str:
    """Return a digest over the builds that the documents of ``period`` are computed from.

    The document of a year has 365 days of activity, which may begin in the year before. ``builds`` are sorted
    by day.
    """
    own = merged_digest(period, builds)
    if not is_year(period):
        return own
    before = merged_digest(year_before(period), builds)
    return hashlib.sha256(f"{before} {own}".encode()).hexdigest()


def period_bounds(period: str) -> tuple[date, date]:
    """Return the first and the last day of a period."""
    if period == HISTORY:
        return date.min, date.max
    if len(period) == len("2026-03-01"):
        return date.fromisoformat(period), date.fromisoformat(period)
    year, _, month = period.partition("-")
    if not month:
        return date(int(year), 1, 1), date(int(year), 12, 31)
    _, length = monthrange(int(year), int(month))
    return date(int(year), int(month), 1), date(int(year), int(month), length)


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


#: The main rule of each statement: it gave most of the hits, or without hits decided most of the requests.
#: It is null if no rule decided most of them; a rule also decided what it blocked. The rule of the latest
#: request may have given none of the hits.
MAIN_RULES: Final = f"""(
    SELECT statement, arg_max_null(rule, row(hits, requests, coalesce(rule, ''))) AS main_rule FROM (
        SELECT statement, rule, sum(hits) AS hits, sum(requests) AS requests FROM (
            SELECT statement, rule, hits, entries AS requests FROM <rules>
            UNION ALL SELECT statement, NULL, hits, {REQUEST_SUM} FROM <statements>
            UNION ALL SELECT statement, NULL, -hits, -hits - misses FROM <rules>
        ) GROUP BY ALL
    ) GROUP BY statement
)"""  # only constants
_IS_USER = "WHERE user_name = getvariable('user_name')"


class Rollups:
    """The merged rollups of a period, for a whole tenant or for one user.

    Queries name these tables in angle brackets. Only the files of the named tables are opened.

    - ``<statements>``: one row per statement, with ``hour_mask`` and ``is_kept``;
    - ``<rules>``: rule x statement, of a tenant;
    - ``<hours>``: hour x user;
    - ``<activity>``: one row per day;
    - ``<user_activity>``: user x day;
    - ``<user_statements>``: user x statement.

    Args:
        parts: the addresses of the tables' files: of one month or year, or of all years for the history.
        user: read only the rows of this user.
    """

    def __init__(
        self, connection: DuckDBPyConnection, parts: Sequence[Mapping[str, str]], *, user: str | None = None
    ) -> None:
        self._connection = connection
        is_tenant = user is None
        if not is_tenant:
            # A variable, because a name with NUL cannot be a literal.
            connection.execute("SET VARIABLE user_name = ?", [user])
        condition = "" if is_tenant else _IS_USER
        tables = {
            "<statements>": (STATEMENTS if is_tenant else USERS, condition),
            "<rules>": (RULES, ""),
            "<hours>": (HOURS, condition),
            "<activity>": (ACTIVITY, "WHERE user_name IS NULL" if is_tenant else _IS_USER),
            "<user_activity>": (ACTIVITY, "WHERE user_name IS NOT NULL" if is_tenant else _IS_USER),
            "<user_statements>": (USERS, condition),
        }
        self._tables = {
            name: f"(SELECT * FROM {_read_parquet(part[table] for part in parts)} {condition})"
            for name, (table, condition) in tables.items()
        }
        self.is_tenant = is_tenant
        self.parts = len(parts)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of ``query``, each as a dict by column name."""
        result = self._execute(query)
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def row(self, query: str) -> dict[str, Any]:
        """Return the only row of ``query``."""
        (row,) = self.rows(query)
        return row

    def statement_texts(self, files: Iterable[str], statements: Sequence[str]) -> dict[str, str]:
        """Return the texts of ``statements`` (MD5, lower-case hex), by MD5.

        Args:
            files: statement tables of days. Texts that are in none of them are left out.
        """
        if not statements:
            return {}
        uuids = ", ".join(f"{quote_text(statement)}::UUID" for statement in statements)
        result = self._connection.execute(
            f"SELECT replace(statement::VARCHAR, '-', ''), sql FROM {_read_parquet(files)} "
            f"WHERE statement IN ({uuids})"
        )
        return dict(result.fetchall())

    def _execute(self, query: str) -> DuckDBPyConnection:
        for name, table in self._tables.items():
            query = query.replace(name, table)
        return self._connection.execute(query)


def _read_parquet(files: Iterable[str]) -> str:
    return f"read_parquet({quote_texts(files)}, hive_partitioning = false)"
