"""Rebuild the merged rollups and the documents of months, years and the whole history.

Contract: "Summary records". Days merge into their month, and months into their year. Raw rows are not read.
Each merge and document records the builds that it was made from, and is stale if they are no longer current.
A build may be killed at any point and run again.

A year is made from its months, and the history from its years. While new logs come all the time, days are
built again between these steps. So one run reads the builds of the days once (`snapshot_days`) and makes all
stale periods from them; the files of replaced builds are kept meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import msgspec
from django.db import transaction

from analytics.models import Kind, MergedRollup, SummaryDocument
from analytics.numbers.documents import month_document
from analytics.numbers.merged import (
    HISTORY,
    DayBuild,
    Rollups,
    is_in_period,
    is_year,
    merge_rollups,
    merged_digest,
    parts_of,
    period_bounds,
    periods_of,
    source_digest,
    waiting_periods,
    year_before,
)
from analytics.numbers.state import (
    LostRollups,
    PublishedBuild,
    locked_period,
    mark_lost_rollups,
    recorded_build,
)
from analytics.numbers.store import (
    Engine,
    StoredRollup,
    WrittenDocument,
    day_builds,
    local_tables,
    merged_prefix,
    new_engine,
    read_merged_rollups,
    remove_orphans,
    save_document,
    upload,
    withdraw_documents,
    write_document,
)
from analytics.numbers.tables import ROLLUP_VERSION, STATEMENTS
from analytics.numbers.yearly import (
    DayActivity,
    daily_activity,
    opportunities_document,
    rules_document,
    users_document,
    year_document,
)
from logs.partitions import supersede
from logs.sources import local_path
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import Busy, build_lock
from tenantadmin.lib.objectstore import ObjectStore, StoreError

if TYPE_CHECKING:
    from tenantadmin.lib.core.structs import JsonStruct


#: The documents of a period, by the length of the period's text.
_KINDS = {
    len("2026-03"): (Kind.MONTH,),
    len("2026"): (Kind.YEAR, Kind.RULES, Kind.OPPORTUNITIES),
    len(HISTORY): (Kind.USERS,),
}


@contextmanager
def snapshot_days(*, tenant: uuid.UUID, wait: bool = False) -> Iterator[Sequence[DayBuild]]:
    """Return the current builds of all days, for `rebuild_period`. No other run may build periods meanwhile.

    Raises:
        Busy: another run builds the periods of this tenant, and ``wait`` is false.
    """
    with build_lock(tenant=tenant, period="periods", wait=wait):
        yield day_builds(tenant=tenant)


def find_stale_periods(*, tenant: uuid.UUID, builds: Sequence[DayBuild] | None = None) -> list[str]:
    """Return the months, then the years, then the history that must be built or withdrawn.

    Their documents are missing, stale, or without days. Periods that must wait for an outdated day are left
    out.

    Args:
        builds: the builds of the tenant's days; default: the current ones.
    """
    if builds is None:
        builds = day_builds(tenant=tenant)
    digests = {period: source_digest(period, builds) for period in periods_of(item.day for item in builds)}
    current: dict[str, set[str]] = {}
    stored = SummaryDocument.objects.filter(tenant_id=tenant).exclude(kind=Kind.DAY)
    for period, kind, source in stored.values_list("period", "kind", "source"):
        if digests.get(period) == source:
            current.setdefault(period, set()).add(kind)
    waiting = waiting_periods(builds)
    stale = [
        period
        for period in digests
        if period not in waiting and current.get(period, set()) != set(_KINDS[len(period)])
    ]
    without_days = set(stored.values_list("period", flat=True)) - set(digests)
    return [*stale, *sorted(without_days, key=len, reverse=True)]


def rebuild_period(
    store: ObjectStore,
    *,
    tenant: uuid.UUID,
    period: str,
    builds: Sequence[DayBuild] | None = None,
    wait: bool = False,
) -> bool:
    """Merge the rollups of a month or a year, and compute the documents of the period, if they are stale.

    The months of a year, and the years of the history, must be current; `find_stale_periods` returns the
    periods in that order. Returns True if it built or withdrew anything.

    Args:
        builds: the builds of the tenant's days; default: the current ones.

    Raises:
        Busy: another worker is building this period, and ``wait`` is false; or a part of it was not built.
        LostRollups: rollups of a part are lost and must be built again first.
        StoreError: the object store failed.
    """
    with locked_period(tenant=tenant, period=period, wait=wait):
        if builds is None:
            builds = day_builds(tenant=tenant)
        if period not in find_stale_periods(tenant=tenant, builds=builds):
            return False
        with recorded_build(tenant=tenant, period=period):
            _remove_orphans(store, tenant=tenant, period=period)
            if not parts_of(period, (item.day for item in builds)):
                _withdraw(tenant=tenant, period=period)
            else:
                _build(store, tenant=tenant, period=period, builds=builds)
        return True


def _build(store: ObjectStore, *, tenant: uuid.UUID, period: str, builds: Sequence[DayBuild]) -> None:
    try:
        with new_engine() as engine:
            _PeriodBuild(store, engine, tenant=tenant, period=period, builds=builds).run()
    except (StoreError, duckdb.Error) as error:
        try:
            mark_lost_rollups(store, tenant=tenant, builds=_builds_to_read(tenant, period, builds))
        except LostRollups as lost:
            raise lost from error
        raise


def _builds_to_read(tenant: uuid.UUID, period: str, builds: Sequence[DayBuild]) -> Iterator[PublishedBuild]:
    """Yield all builds that a build of ``period`` may read."""
    if period != HISTORY:
        for item in builds:
            if is_in_period(item.day, period):
                name, _, _ = item.build.partition(" ")
                keys = [item.files[STATEMENTS]] if is_year(period) else item.files.values()
                yield PublishedBuild(item.day, name, keys)
    periods = {period, *parts_of(period, (item.day for item in builds))}
    if is_year(period):
        periods.add(year_before(period))
    for part, merged in sorted(read_merged_rollups(tenant=tenant, periods=periods).items()):
        yield PublishedBuild(part, merged.build, merged.files.values())


class _PeriodBuild:
    """One build of a period that has days: its documents, and its merged rollups if they are stale."""

    def __init__(
        self,
        store: ObjectStore,
        engine: Engine,
        *,
        tenant: uuid.UUID,
        period: str,
        builds: Sequence[DayBuild],
    ) -> None:
        self._store, self._engine = store, engine
        self._tenant, self._period, self._builds = tenant, period, builds
        self._merged = read_merged_rollups(tenant=tenant)
        self._name = uuid.uuid4().hex

    def run(self) -> None:
        """Build and upload the files, and publish them in one transaction."""
        source = source_digest(self._period, self._builds)
        merged = self._merge()
        documents = self._documents(merged)
        prefix = merged_prefix(self._tenant, self._period)
        keys = {table: f"{prefix}{self._name}.{table}.parquet" for table in merged}
        large = {
            kind: (f"{prefix}{self._name}.{kind}.json", document.path)
            for kind, document in documents.items()
            if document.path is not None
        }
        upload(self._store, {keys[table]: path for table, path in merged.items()})
        upload(self._store, dict(large.values()))
        with transaction.atomic():
            if merged:
                self._publish(keys, size=sum(path.stat().st_size for path in merged.values()))
            for kind, document in documents.items():
                file, _ = large.get(kind, ("", None))
                save_document(
                    tenant=self._tenant,
                    kind=kind,
                    period=self._period,
                    document=document,
                    source=source,
                    file=file,
                )

    def _merge(self) -> Mapping[str, Path]:
        """Merge rollups to local files. Return nothing if the stored merged rollups are current."""
        if self._period == HISTORY or self._is_current(self._period):
            return {}
        if is_year(self._period):
            parts = [self._part(month).files for month in self._parts(self._period)]
        else:
            first, last = period_bounds(self._period)
            parts = [item.files for item in self._builds if first <= item.day <= last]
        uris = [local_tables(self._store, files) for files in parts]
        return merge_rollups(self._engine.connection, uris, directory=self._engine.directory)

    def _documents(self, merged: Mapping[str, Path]) -> dict[Kind, WrittenDocument]:
        return {
            kind: write_document(
                [msgspec.json.encode(document)], spill=self._engine.directory / f"{kind}.json"
            )
            for kind, document in self._compute(merged).items()
        }

    def _compute(self, merged: Mapping[str, Path]) -> dict[Kind, JsonStruct]:
        if self._period == HISTORY:
            years = self._rollups(*self._parts(HISTORY))
            return {Kind.USERS: users_document(years, tenant=self._tenant, generated_at=now())}
        own = (
            Rollups(self._engine.connection, [{table: str(path) for table, path in merged.items()}])
            if merged
            else self._rollups(self._period)
        )
        first, _ = period_bounds(self._period)
        if not is_year(self._period):
            month = month_document(own, month=first.month)
            return {} if month is None else {Kind.MONTH: month}
        texts = {item.day: item.files[STATEMENTS] for item in self._builds if item.day.year == first.year}
        activity = [*self._activity_before(), *daily_activity(own)]
        return {
            Kind.YEAR: year_document(own, tenant=self._tenant, year=first.year, activity=activity),
            Kind.RULES: rules_document(own),
            Kind.OPPORTUNITIES: opportunities_document(
                own, text_file=lambda day: local_path(self._store, texts[day])
            ),
        }

    def _activity_before(self) -> list[DayActivity]:
        before = year_before(self._period)
        has_days = before != self._period and parts_of(before, (item.day for item in self._builds))
        return daily_activity(self._rollups(before)) if has_days else []

    def _parts(self, period: str) -> list[str]:
        return parts_of(period, (item.day for item in self._builds))

    def _rollups(self, *periods: str) -> Rollups:
        parts = [local_tables(self._store, self._part(period).files) for period in periods]
        return Rollups(self._engine.connection, parts)

    def _part(self, period: str) -> StoredRollup:
        """Return the merged rollups of a period that is part of this one.

        Raises:
            Busy: they were not made from the same days as this build.
        """
        if not self._is_current(period):
            raise Busy(f"{period or 'the history'} of tenant {self._tenant} is not current yet")
        return self._merged[period]

    def _is_current(self, period: str) -> bool:
        merged = self._merged.get(period)
        return merged is not None and merged.source == merged_digest(period, self._builds)

    def _publish(self, keys: Mapping[str, str], *, size: int) -> None:
        before = self._merged.get(self._period)
        if before is not None:
            supersede(before.files.values())
        MergedRollup.objects.update_or_create(
            tenant_id=self._tenant,
            period=self._period,
            defaults={
                "build": self._name,
                "source": merged_digest(self._period, self._builds),
                "version": ROLLUP_VERSION,
                "files": dict(keys),
                "bytes": size,
                "built_at": now(),
            },
        )


def _withdraw(*, tenant: uuid.UUID, period: str) -> None:
    with transaction.atomic():
        for row in MergedRollup.objects.filter(tenant_id=tenant, period=period):
            supersede(row.files.values())
            row.delete()
        withdraw_documents(tenant=tenant, period=period, kinds=_KINDS[len(period)])


def _remove_orphans(store: ObjectStore, *, tenant: uuid.UUID, period: str) -> None:
    merged = MergedRollup.objects.filter(tenant_id=tenant, period=period)
    documents = SummaryDocument.objects.filter(tenant_id=tenant, period=period).exclude(file="")
    used = {key for files in merged.values_list("files", flat=True) for key in files.values()}
    used.update(documents.values_list("file", flat=True))
    remove_orphans(store, prefix=merged_prefix(tenant, period), used=used)
