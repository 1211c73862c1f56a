"""Rules of a range of days, from the rollups of whole months and of single days."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analytics.models import DayRollup
from analytics.summaries.documents.rules import count_rules
from analytics.summaries.periods import month_of, period_bounds
from analytics.summaries.rollup_schema import ROLLUP_VERSION
from analytics.summaries.rollups import Rollups
from analytics.summaries.store import read_merged_rollups, table_uris

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date
    from uuid import UUID

    from duckdb import DuckDBPyConnection

    from analytics.summaries.documents.rules import RuleRecord
    from tenantadmin.lib.objectstore import ObjectStore


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


def _rollups(connection: DuckDBPyConnection, store: ObjectStore, range_files: RangeFiles) -> Rollups:
    return Rollups(connection, [table_uris(store, files) for files in range_files.parts])
