"""The health of a tenant: hit rates of the last days, from the sums in the rollups of each day."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc
import pyarrow.parquet as pq
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, Sum

from analytics.models import Alert, DayRollup, TenantHealth
from analytics.summaries.engine import new_engine
from analytics.summaries.rollup_schema import HOURS, NOT_CACHED_SUM, ROLLUP_VERSION, STATEMENTS
from analytics.summaries.rollups import Rollups
from analytics.summaries.store import table_uris
from logs.models import Partition
from logs.partitions import partitions_with_file
from tenantadmin.lib.core.timestamps import days_before, now

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from uuid import UUID

    from tenantadmin.lib.objectstore import ObjectStore

#: The windows of the hit rates, in days.
WINDOWS: Final = (1, 7, 28)

_HOUR_COUNTS: Final = ("hits", "misses", "hit_time_count", "miss_time_count")
_HOUR_AMOUNTS: Final = ("hit_bytes", "hit_time_sum", "miss_time_sum")
_HOUR_SUMS: Final = f"""SELECT
    {", ".join(f"coalesce(sum({name}), 0)::BIGINT AS {name}" for name in _HOUR_COUNTS)},
    {", ".join(f"coalesce(sum({name}), 0)::DOUBLE AS {name}" for name in _HOUR_AMOUNTS)}
FROM <hours>"""  # noqa: S608  # only constants
_STATEMENT_SUMS: Final = f"""SELECT
    coalesce(sum(warehouse_sum), 0)::BIGINT AS warehouse_ms,
    coalesce(sum({NOT_CACHED_SUM}), 0)::BIGINT AS not_cached
FROM <statements>"""  # noqa: S608  # only constants


@dataclass(frozen=True, slots=True)
class DayCounts:
    """The sums of a day. ``misses`` includes ``not_cached``: requests bypassed or passed through."""

    hits: int
    misses: int
    not_cached: int
    warehouse_ms: int
    hit_bytes: float
    hit_time_sum: float
    hit_time_count: int
    miss_time_sum: float
    miss_time_count: int

    def as_fields(self) -> dict[str, float]:
        return asdict(self)


def count_day(files: Mapping[str, Path]) -> DayCounts:
    """Return the sums of a day from the local files of its new rollups."""
    hours = _sum(files[HOURS], *_HOUR_COUNTS, *_HOUR_AMOUNTS)
    # Wide sums are decimals.
    hours |= {name: float(hours[name]) for name in _HOUR_AMOUNTS}
    statements = _sum(files[STATEMENTS], "warehouse_sum", "bypasses", "passthroughs")
    return DayCounts(
        not_cached=statements["bypasses"] + statements["passthroughs"],
        warehouse_ms=statements["warehouse_sum"],
        **hours,
    )


def _sum(path: Path, *columns: str) -> dict[str, Any]:
    with pq.ParquetFile(path) as file:
        table = file.read(columns=list(columns), use_threads=False)
    return {name: pc.sum(table[name]).as_py() or 0 for name in columns}


def update_health(tenant: UUID) -> None:
    """Update the row of a tenant, and make its digests and alerts due.

    Call it in the transaction that publishes a day.
    """
    TenantHealth.objects.get_or_create(tenant_id=tenant)
    # If two days are published at once, the second transaction waits here, and then sees the first.
    TenantHealth.objects.select_for_update(no_key=True).get(pk=tenant)
    TenantHealth.objects.filter(pk=tenant).update(**_measure(tenant), updated_at=now(), due_at=now())
    Alert.objects.filter(tenant=tenant, enabled=True).make_due(now())


def _measure(tenant: UUID) -> dict[str, Any]:
    days = DayRollup.objects.filter(tenant_id=tenant)
    last_day = days.aggregate(last=Max("day"))["last"]
    fields: dict[str, Any] = {
        "last_day": last_day,
        "stale_days": _count_stale_days(tenant),
        "quarantined": Partition.objects.filter(tenant_id=tenant).aggregate(sum=Sum("quarantined"))["sum"]
        or 0,
        **{f"rate_{window}": None for window in WINDOWS},
        "drop": None,
        "requests_7": 0,
        "misses_7": 0,
        "warehouse_ms_7": 0,
    }
    if last_day is None:
        return fields
    within = {window: Q(day__gte=days_before(last_day, window - 1)) for window in WINDOWS}
    sums = days.filter(within[max(WINDOWS)]).aggregate(
        **{
            f"{name}_{window}": Sum(name, filter=condition, default=0)
            for window, condition in within.items()
            for name in ("hits", "misses", "warehouse_ms")
        }
    )
    for window in WINDOWS:
        requests = sums[f"hits_{window}"] + sums[f"misses_{window}"]
        fields[f"rate_{window}"] = sums[f"hits_{window}"] / requests if requests else None
    if fields["rate_7"] is not None:
        fields["drop"] = fields["rate_28"] - fields["rate_7"]
    fields["requests_7"] = sums["hits_7"] + sums["misses_7"]
    fields["misses_7"], fields["warehouse_ms_7"] = sums["misses_7"], sums["warehouse_ms_7"]
    return fields


def _count_stale_days(tenant: UUID) -> int:
    current = DayRollup.objects.filter(
        tenant_id=tenant, day=OuterRef("day"), build=OuterRef("build"), version=ROLLUP_VERSION
    )
    days = partitions_with_file(tenant=tenant)
    return days.filter(~Exists(current)).count()


def backfill_health(store: ObjectStore, *, tenant: UUID) -> int:
    """Fill in the sums of days that were built by a version without sums, and update the tenant's row.

    Returns the number of these days. Days that must be built again are skipped: the build fills them in.

    Raises:
        StoreError: the object store failed.
    """
    rows = DayRollup.objects.filter(tenant_id=tenant, not_cached=None, version=ROLLUP_VERSION)
    days = list(rows.values_list("pk", "build", "files"))
    for key, build, files in days:
        with new_engine(store) as engine:
            rollups = Rollups(engine.connection, [table_uris(store, files)])
            counts = DayCounts(**rollups.row(_HOUR_SUMS), **rollups.row(_STATEMENT_SUMS))
        # A newer build has sums already.
        DayRollup.objects.filter(pk=key, build=build).update(**counts.as_fields())
    with transaction.atomic():
        update_health(tenant)
    return len(days)
