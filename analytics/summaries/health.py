"""The health of a tenant: hit rates of the last days, from the sums in the rollups of each day."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, Sum

from analytics.models import Alert, DayRollup, TenantHealth
from analytics.summaries.engine import new_engine
from analytics.summaries.rollup_schema import HOURS, ROLLUP_VERSION, STATEMENTS
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

_HOUR_SUMS: Final = (
    "SELECT coalesce(sum(hits), 0)::BIGINT AS hits, coalesce(sum(misses), 0)::BIGINT AS misses FROM <hours>"
)
_WAREHOUSE_SUM: Final = "SELECT coalesce(sum(warehouse_sum), 0)::BIGINT AS warehouse_ms FROM <statements>"


@dataclass(frozen=True, slots=True)
class DayCounts:
    """The sums of a day: hits, misses (including bypassed and passed requests), and warehouse time."""

    hits: int
    misses: int
    warehouse_ms: int

    def as_fields(self) -> dict[str, int]:
        return asdict(self)


def count_day(files: Mapping[str, Path]) -> DayCounts:
    """Return the sums of a day from the local files of its new rollups."""
    hours = _read(files[HOURS], "hits", "misses")
    warehouse = _read(files[STATEMENTS], "warehouse_sum")["warehouse_sum"]
    return DayCounts(
        hits=pc.sum(hours["hits"]).as_py() or 0,
        misses=pc.sum(hours["misses"]).as_py() or 0,
        warehouse_ms=pc.sum(warehouse).as_py() or 0,
    )


def _read(path: Path, *columns: str) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return file.read(columns=list(columns), use_threads=False)


def update_health(tenant: UUID) -> None:
    """Update the row of a tenant, and make its alerts due.

    Call it in the transaction that publishes a day.
    """
    TenantHealth.objects.get_or_create(tenant_id=tenant)
    # If two days are published at once, the second transaction waits here, and then sees the first.
    TenantHealth.objects.select_for_update(no_key=True).get(pk=tenant)
    TenantHealth.objects.filter(pk=tenant).update(**_measure(tenant), updated_at=now(), digests_due_at=None)
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
    rows = DayRollup.objects.filter(tenant_id=tenant, hits=None, version=ROLLUP_VERSION)
    days = list(rows.values_list("pk", "build", "files"))
    for key, build, files in days:
        with new_engine(store) as engine:
            rollups = Rollups(engine.connection, [table_uris(store, files)])
            counts = DayCounts(**rollups.row(_HOUR_SUMS), **rollups.row(_WAREHOUSE_SUM))
        # A newer build has sums already.
        DayRollup.objects.filter(pk=key, build=build).update(**counts.as_fields())
    with transaction.atomic():
        update_health(tenant)
    return len(days)
