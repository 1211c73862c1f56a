"""The state of builds: their records, the health of a tenant, lost rollups, and what another release made."""

from __future__ import annotations

import logging
import shutil
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import duckdb
import pyarrow.compute as pc
import pyarrow.parquet as pq
from django.conf import settings
from django.core.cache import cache
from django.db.models import Exists, Max, OuterRef, Q, Sum

from analytics.models import Alert, Build, DayRollup, Kind, MergedRollup, SummaryDocument, TenantHealth
from analytics.numbers.store import scratch_directory
from analytics.numbers.tables import HOURS, NO_VERSION, ROLLUP_VERSION, STATEMENTS
from logs.compaction.writer import connect
from logs.layout import logs_prefix
from logs.models import Partition, PendingBuild
from logs.partitions import partitions_with_file
from logs.pending import mark_all_periods, mark_days
from logs.quoting import quote_text
from tenantadmin.lib.core.metrics import count_build
from tenantadmin.lib.core.timestamps import days_before, now
from tenantadmin.lib.database.connections import Busy, build_lock
from tenantadmin.lib.objectstore import ObjectNotFound, ObjectStore, StoreError

if TYPE_CHECKING:
    from analytics.models.summaries import BuildQuerySet


def delete_old_builds() -> int:
    """Delete the records of builds that started more than `BUILD_LIFETIME` ago. Return the count."""
    deleted, _ = Build.objects.filter(started_at__lt=now() - settings.BUILD_LIFETIME).delete()
    return deleted


@contextmanager
def locked_period(*, tenant: UUID, period: str, wait: bool) -> Iterator[None]:
    """Hold the lock of a period. Mark an earlier, killed build of it as failed.

    Raises:
        Busy: another worker holds the lock, and ``wait`` is false.
    """
    with build_lock(tenant=tenant, period=period or "history", wait=wait):
        Build.objects.filter(tenant_id=tenant, period=period, state=Build.State.RUNNING).update(
            state=Build.State.FAILED, finished_at=now(), error="The worker ended before the build did."
        )
        yield


def close_failures(builds: BuildQuerySet, *, rows: int | None = None) -> None:
    """Record that periods are current whose last build failed: nothing is left to build.

    The worker was killed after it had published, or the log of the day is gone. The caller holds a lock, so
    that no build of these periods runs.
    """
    at = now()
    Build.objects.bulk_create(
        Build(
            tenant_id=failed.tenant_id,
            period=failed.period,
            state=Build.State.DONE,
            started_at=at,
            finished_at=at,
            rows=rows,
        )
        for failed in builds.unrepaired()
    )


def end_killed_builds() -> None:
    """Mark builds as failed that are recorded as running although the lock of their period is free."""
    running = Build.objects.filter(state=Build.State.RUNNING).order_by().distinct()
    for tenant, period in running.values_list("tenant_id", "period"):
        with suppress(Busy), locked_period(tenant=tenant, period=period, wait=False):
            pass


@contextmanager
def recorded_build(*, tenant: UUID, period: str) -> Iterator[Build]:
    """Record a build as running, then as done or failed. The caller may set its ``rows``.

    The record of a killed build stays running until `end_killed_builds`. A build that has to wait for another
    one (`Busy`) leaves none.
    """
    build = Build.objects.create(tenant_id=tenant, period=period)
    try:
        yield build
    except Busy:
        build.delete()
        raise
    except BaseException as error:
        build.state, build.error = Build.State.FAILED, f"{type(error).__name__}: {error}"
        raise
    else:
        build.state = Build.State.DONE
    finally:
        if build.pk is not None:
            build.finished_at = now()
            build.save()
            count_build(kind="day" if len(period) == len("2026-03-01") else "period", state=build.state)


#: A later release that was last seen this many seconds ago has been replaced by this one.
GONE_SECONDS: Final = 900.0
#: The cache key of the version that replaces documents, and of the time when its release was last seen.
#: Release 0.2.0 stores two numbers before the time.
_SEEN: Final = "summary-versions"


def mark_outdated(*, limit: int) -> None:
    """Mark what another release made, at most ``limit`` days.

    Raises:
        RedisError: Redis does not answer.
    """
    seen, *_, seen_at = cache.get(_SEEN) or (0, 0.0)
    if seen > ROLLUP_VERSION and time.time() - seen_at < GONE_SECONDS:
        return
    cache.set(_SEEN, (ROLLUP_VERSION, time.time()), timeout=None)
    if seen != ROLLUP_VERSION:
        documents = SummaryDocument.objects.exclude(kind=Kind.DAY).order_by()
        mark_all_periods(tenants=documents.values_list("tenant_id", flat=True).distinct())
    mark_outdated_days(limit=limit)


def mark_outdated_days(*, limit: int) -> int:
    """Record that days must be built again because another version made their rollups. Return the count.

    Cheap when there are none: two index lookups. Days that are already pending are skipped.
    """
    pending = PendingBuild.objects.filter(tenant_id=OuterRef("tenant_id"), day=OuterRef("day"))
    rows = DayRollup.objects.filter(~Exists(pending)).order_by("version").values_list("tenant_id", "day")
    earlier = rows.filter(version__gt=NO_VERSION, version__lt=ROLLUP_VERSION)
    later = rows.filter(version__gt=ROLLUP_VERSION)
    found = [*earlier[:limit], *later[:limit]][:limit]
    outdated: dict[uuid.UUID, list[date]] = {}
    for tenant, day in found:
        outdated.setdefault(tenant, []).append(day)
    # Sorted, so that two callers at once cannot deadlock.
    for tenant, days in sorted(outdated.items()):
        mark_days(tenant=tenant, days=days)
    return len(found)


_log = logging.getLogger(__name__)

#: If the store cannot return this many objects and has returned none, it is unreachable.
_MAX_FAILURES: Final = 3
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PublishedBuild:
    """A published build of a day (a date), a month, a year or the history, and the keys of its objects."""

    period: date | str
    build: str
    keys: Collection[str]


class LostRollups(StoreError):
    """A period cannot be built because rollups are lost. ``days`` and ``periods`` are now marked as stale."""

    def __init__(self, *, tenant: UUID, days: Sequence[date], periods: Sequence[str]) -> None:
        names = ", ".join([*map(str, days), *periods])
        super().__init__(f"rollups of tenant {tenant} were lost and must be built again: {names}")
        self.days = days
        self.periods = periods


def mark_lost_rollups(store: ObjectStore, *, tenant: UUID, builds: Iterable[PublishedBuild]) -> None:
    """Read all objects of ``builds``, and mark lost builds as stale.

    Raises:
        LostRollups: at least one build is lost.
        StoreError: the store is unreachable.
    """
    lost = _find_lost(store, builds=builds)
    if lost and _has_logs(store, tenant):
        days, periods = _mark_as_stale(lost, tenant=tenant)
        raise LostRollups(tenant=tenant, days=days, periods=periods)


def mark_missing_objects(store: ObjectStore, *, tenant: UUID) -> None:
    """Mark days, months and years as stale whose objects are missing or have another size.

    Objects are listed but not read.

    Raises:
        StoreError: the object store failed.
    """
    # Read the builds before listing objects. Replaced objects stay for a while, so none seems missing.
    published = _published_builds(tenant)
    sizes = {
        entry.key: entry.size
        for folder in ("compacted", "rollups")
        for entry in store.list(f"{tenant}/{folder}/")
    }
    lost = [
        build
        for build, size in published
        if not sizes.keys() >= set(build.keys) or sum(sizes[key] for key in build.keys) != size
    ]
    if lost and _has_logs(store, tenant):
        _mark_as_stale(lost, tenant=tenant)
        _log.warning("Objects of %d builds of tenant %s are lost; building them again", len(lost), tenant)


def _published_builds(tenant: UUID) -> list[tuple[PublishedBuild, int]]:
    """Return the published builds, each with the total size of its objects."""
    days = DayRollup.objects.filter(tenant_id=tenant).values_list("day", "build", "files", "bytes")
    merged = MergedRollup.objects.filter(tenant_id=tenant).values_list("period", "build", "files", "bytes")
    logs = partitions_with_file(tenant=tenant)
    documents = SummaryDocument.objects.filter(tenant_id=tenant).exclude(file="")
    return [
        *((PublishedBuild(day, build, files.values()), size) for day, build, files, size in days),
        *((PublishedBuild(period, build, files.values()), size) for period, build, files, size in merged),
        *((PublishedBuild(log.day, log.build, log.files), log.bytes) for log in logs.defer("hours")),
        *(
            (PublishedBuild(date.fromisoformat(period) if kind == Kind.DAY else period, source, [file]), size)
            for kind, period, source, file, size in documents.values_list(
                "kind", "period", "source", "file", "bytes"
            )
        ),
    ]


def _mark_as_stale(lost: Sequence[PublishedBuild], *, tenant: UUID) -> tuple[list[date], list[str]]:
    """Mark the days, and the months, years and history, of ``lost`` builds as stale. Return both."""
    days = sorted({build.period for build in lost if not isinstance(build.period, str)})
    periods = sorted({build.period for build in lost if isinstance(build.period, str)})
    # Do not mark a period that has been built again in the meantime.
    is_lost = {"tenant_id": tenant, "build__in": [build.build for build in lost]}
    DayRollup.objects.filter(**is_lost, day__in=days).update(version=NO_VERSION)
    MergedRollup.objects.filter(**is_lost, period__in=periods).update(source="")
    SummaryDocument.objects.filter(tenant_id=tenant, period__in=periods).update(source="")
    return days, periods


def _has_logs(store: ObjectStore, tenant: UUID) -> bool:
    """Return False if no raw log is left: the store is empty, or the tenant is being deleted."""
    return store.listdir(logs_prefix(tenant)) != ([], [])


def _find_lost(store: ObjectStore, *, builds: Iterable[PublishedBuild]) -> list[PublishedBuild]:
    lost: list[PublishedBuild] = []
    failures: list[StoreError] = []
    readable_key = ""
    with scratch_directory() as directory:
        for build in builds:
            for key in build.keys:
                try:
                    _check_readable(store, key, directory=directory)
                except (ObjectNotFound, duckdb.Error) as error:
                    _log.warning("Lost %s: %s", key, error)
                except StoreError as error:
                    failures.append(error)
                    if readable_key:
                        # If this fails too, the store has become unreachable.
                        _copy(store, readable_key, directory / "copy.parquet")
                    elif len(failures) == _MAX_FAILURES:
                        raise
                    _log.warning("Cannot read %s: %s", key, error)
                else:
                    readable_key = key
                    continue
                lost.append(build)
                break
    if failures and not readable_key:
        raise failures[0]
    return lost


def _check_readable(store: ObjectStore, key: str, *, directory: Path) -> None:
    """Read a Parquet file with a separate DuckDB, because a damaged file can make a DuckDB unusable."""
    copy = directory / "copy.parquet"
    _copy(store, key, copy)
    with connect(spill=directory / "spill") as engine:
        engine.execute(f"SELECT max(hash(t)) FROM read_parquet({quote_text(copy)}) t").fetchall()  # noqa: S608


def _copy(store: ObjectStore, key: str, target: Path) -> None:
    with store.open(key) as file, target.open("wb") as out:
        shutil.copyfileobj(file, out, _CHUNK_BYTES)


#: The windows of the hit rates, in days.
WINDOWS: Final = (1, 7, 28)

_HOUR_COUNTS: Final = ("hits", "misses", "hit_time_count", "miss_time_count")
_HOUR_AMOUNTS: Final = ("hit_bytes", "hit_time_sum", "miss_time_sum")


def count_day(files: Mapping[str, Path]) -> dict[str, float]:
    """Return the sums of a day, by the fields of `DayRollup`, from the local files of its new rollups.

    ``misses`` includes ``not_cached``: requests bypassed or passed through.
    """
    hours = _sum(files[HOURS], *_HOUR_COUNTS, *_HOUR_AMOUNTS)
    # Wide sums are decimals.
    hours |= {name: float(hours[name]) for name in _HOUR_AMOUNTS}
    statements = _sum(files[STATEMENTS], "warehouse_sum", "bypasses", "passthroughs")
    return {
        **hours,
        "not_cached": statements["bypasses"] + statements["passthroughs"],
        "warehouse_ms": statements["warehouse_sum"],
    }


def _sum(path: Path, *columns: str) -> dict[str, Any]:
    with pq.ParquetFile(path) as file:
        table = file.read(columns=list(columns), use_threads=False)
    return {name: pc.sum(table[name]).as_py() or 0 for name in columns}


def update_health(tenant: UUID) -> None:
    """Update the row of a tenant, and make its digests and alerts due, unless they rest after failures.

    Call it in the transaction that publishes a day.
    """
    TenantHealth.objects.get_or_create(tenant_id=tenant)
    # If two days are published at once, the second transaction waits here, and then sees the first.
    TenantHealth.objects.select_for_update(no_key=True).get(pk=tenant)
    TenantHealth.objects.filter(pk=tenant).update(**_measure(tenant), updated_at=now())
    # A build each minute would else repeat each minute what fails after two.
    TenantHealth.objects.filter(pk=tenant, attempts__lte=1).update(due_at=now())
    Alert.objects.filter(tenant=tenant, enabled=True, attempts__lte=1).make_due(now())


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
