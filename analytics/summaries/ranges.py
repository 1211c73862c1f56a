"""Rules and statements of a range of days, from the rollups of whole months and of single days."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from analytics.models import DayRollup
from analytics.summaries.documents.rules import count_rules
from analytics.summaries.periods import month_of, period_bounds
from analytics.summaries.rollup_schema import LATEST_ORDER, REQUEST_SUM, ROLLUP_VERSION, STATEMENTS
from analytics.summaries.rollups import MAIN_RULES, Rollups
from analytics.summaries.store import read_merged_rollups, table_uris

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date
    from uuid import UUID

    from duckdb import DuckDBPyConnection

    from analytics.summaries.documents.rules import RuleRecord
    from tenantadmin.lib.objectstore import ObjectStore

_MOST_REQUESTS: Final = f"""
    SELECT replace(statement::VARCHAR, '-', '') AS hash, top.* EXCLUDE statement, main_rule
    FROM (SELECT statement,
        sum({REQUEST_SUM})::BIGINT AS requests,
        sum(hits)::BIGINT AS hits,
        coalesce(sum(warehouse_sum), 0)::BIGINT AS warehouse_ms,
        arg_max_null(latest_rule, {LATEST_ORDER}) AS rule,
        arg_max(latest_day, {LATEST_ORDER}) AS day
    FROM <statements> GROUP BY statement ORDER BY requests DESC, statement LIMIT {{most}}
    ) AS top LEFT JOIN {MAIN_RULES} USING (statement) ORDER BY requests DESC, statement
"""  # noqa: S608  # only constants


@dataclass(frozen=True, slots=True)
class RangeFiles:
    """The rollups of a range. ``parts`` map tables to object keys. ``days`` does so for each day."""

    parts: Sequence[Mapping[str, str]] = field(default=())
    days: Mapping[date, Mapping[str, str]] = field(default_factory=dict)


def find_range(*, tenant: UUID, first: date, last: date) -> RangeFiles:
    """Return the rollups of the days from ``first`` to ``last``, in two queries.

    Whole months are one part each. Days that are being rolled up again after an upgrade are left out.
    """
    rows = DayRollup.objects.filter(tenant_id=tenant, day__range=(first, last), version=ROLLUP_VERSION)
    days = dict(rows.order_by("day").values_list("day", "files"))
    whole = {
        month
        for month in map(month_of, days)
        if first <= period_bounds(month)[0] and period_bounds(month)[1] <= last
    }
    merged = {
        month: stored.files
        for month, stored in read_merged_rollups(tenant=tenant, periods=whole).items()
        if stored.version == ROLLUP_VERSION
    }
    single = [files for day, files in days.items() if month_of(day) not in merged]
    # Months first: DuckDB takes the columns of the first file, and days have more columns than months.
    return RangeFiles([*merged.values(), *single], days)


def rules_of(connection: DuckDBPyConnection, store: ObjectStore, range_files: RangeFiles) -> list[RuleRecord]:
    """Return the counts of `count_rules`."""
    return count_rules(_rollups(connection, store, range_files)) if range_files.parts else []


def statements_of(
    connection: DuckDBPyConnection, store: ObjectStore, range_files: RangeFiles, *, most: int
) -> list[dict[str, Any]]:
    """Return the statements with most requests.

    Each is ``{sql, requests, hits, warehouse_ms, rule, main_rule, day}``. ``rule`` and ``day`` describe the
    latest request, `MAIN_RULES` says what ``main_rule`` is.
    """
    if not range_files.parts:
        return []
    rollups = _rollups(connection, store, range_files)
    rows = rollups.rows(_MOST_REQUESTS.format(most=most))
    files = [store.uri(range_files.days[day][STATEMENTS]) for day in sorted({row["day"] for row in rows})]
    texts = rollups.statement_texts(files, [row["hash"] for row in rows])
    return [{**row, "sql": texts[row["hash"]]} for row in rows]


def _rollups(connection: DuckDBPyConnection, store: ObjectStore, range_files: RangeFiles) -> Rollups:
    return Rollups(connection, [table_uris(store, files) for files in range_files.parts])
