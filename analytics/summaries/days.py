"""Keeps days current: finds those whose raw objects changed, compacts them, rolls them up, in one step.

Contract: "Query log entry and ``proxy_logs``", "Summary records". May be killed anywhere and run again.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q

from analytics.models import DayRollup, Kind, SummaryDocument
from analytics.summaries.builds import locked_period, recorded_build
from analytics.summaries.daytables import DayTables
from analytics.summaries.documents.day import day_document
from analytics.summaries.files import remove_orphans, scratch_directory, upload
from analytics.summaries.rollup import write_rollups
from analytics.summaries.rollup_tables import ROLLUP_VERSION
from analytics.summaries.store import Written, save_document, withdraw_documents, write_document
from logs.compaction.build import CompactedDay, compact_day
from logs.layout import compacted_prefix, partition_key, rollup_key, rollup_prefix
from logs.listing import DayListing, UnlistedDay, find_days, has_objects, list_day
from logs.models import Partition
from logs.partitions import Build, partition_base, publish_partition, supersede, withdraw_partition
from tenantadmin.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date
    from pathlib import Path

    from tenantadmin.objectstore import ObjectStore


@dataclass(frozen=True, slots=True)
class _Rolled:
    """A day's rollups under construction, local files, and the document computed from them."""

    files: Mapping[str, Path]
    document: Written


@dataclass(frozen=True, slots=True)
class _Known:
    """What a partition was built from, and whether the rollups that it needs are of the present version."""

    digest: str
    is_whole: bool


def find_stale_days(
    store: ObjectStore,
    *,
    tenant: uuid.UUID,
    first: date | None = None,
    last: date | None = None,
    is_wanted: Callable[[date], bool] = lambda _: True,
) -> list[date]:
    """The days that are not current, oldest first. Lists the objects of those it looks at, reads none.

    Args:
        first, last: bounds, both included.
        is_wanted: which of the days to look at.
    """
    known = _known_days(tenant, first=first, last=last)
    present = find_days(store, tenant=tenant, first=first, last=last)
    gone = known.keys() - set(present)
    stale = (
        day
        for day in sorted([*gone, *present])
        if is_wanted(day) and (day in gone or _find_changes(store, known.get(day), tenant=tenant, day=day))
    )
    return list(stale)


def rebuild_day(store: ObjectStore, *, tenant: uuid.UUID, day: date, wait: bool = False) -> bool:
    """Bring one day's partition, rollups and summary up to date with its raw objects.

    Returns whether anything had to be done.

    Raises:
        Busy: another worker is at this day, and ``wait`` is false.
        StoreError: the object store failed.
    """
    with locked_period(tenant=tenant, period=day.isoformat(), wait=wait):
        known = _known_days(tenant, first=day, last=day).get(day)
        found = _find_changes(store, known, tenant=tenant, day=day)
        if found is None:
            return False
        with recorded_build(tenant=tenant, period=day.isoformat()) as record:
            _remove_orphans(store, tenant=tenant, day=day)
            record.rows = _build(store, found)
        return True


def _known_days(tenant: uuid.UUID, *, first: date | None, last: date | None) -> dict[date, _Known]:
    """The days that have a partition. Two queries, however many days there are."""
    asked = Q(tenant_id=tenant)
    if first is not None:
        asked &= Q(day__gte=first)
    if last is not None:
        asked &= Q(day__lte=last)
    rolled_up = set(DayRollup.objects.filter(asked, version=ROLLUP_VERSION).values_list("day", "build"))
    partitions = Partition.objects.filter(asked).values_list("day", "listing_digest", "file", "build")
    return {
        day: _Known(digest, is_whole=not file or (day, build) in rolled_up)
        for day, digest, file, build in partitions
    }


def _find_changes(
    store: ObjectStore, known: _Known | None, *, tenant: uuid.UUID, day: date
) -> DayListing | UnlistedDay | None:
    """The day where it is not current, or None. One that has no partition is not listed."""
    if known is None:
        return UnlistedDay(tenant, day) if has_objects(store, tenant=tenant, day=day) else None
    listing = list_day(store, tenant=tenant, day=day)
    is_current = bool(listing.hours) and known.digest == listing.digest and known.is_whole
    return None if is_current else listing


def _build(store: ObjectStore, found: DayListing | UnlistedDay) -> int:
    """Build everything of a day and publish it in one transaction; returns the rows."""
    tenant, day = found.tenant, found.day
    name = uuid.uuid4().hex
    with scratch_directory() as directory:
        # The engine reads the day from the path.
        place = directory / f"day={day.isoformat()}"
        place.mkdir()
        compacted = compact_day(store, found, directory=place, base=partition_base(tenant=tenant, day=day))
        if compacted.file is None:
            with transaction.atomic():
                _withdraw_rollup(tenant=tenant, day=day)
                _publish_without_rows(compacted, name=name)
            return 0
        rolled = _roll_up(compacted.file, day=day)
        file = partition_key(tenant, day, build=name)
        keys = {table: rollup_key(tenant, day, build=name, table=table) for table in rolled.files}
        document_key = "" if rolled.document.path is None else f"{rollup_prefix(tenant, day)}{name}.json"
        upload(store, {file: compacted.file, **{keys[table]: path for table, path in rolled.files.items()}})
        if rolled.document.path is not None:
            upload(store, {document_key: rolled.document.path})
        build = Build(
            name=name,
            file=file,
            rows=compacted.rows,
            bytes=compacted.file.stat().st_size,
            duplicates=compacted.duplicates,
            quarantined=compacted.quarantined,
            hours=compacted.hours,
        )
        with transaction.atomic():
            publish_partition(compacted.listing, build)
            _publish_rollup(compacted.listing, name=name, rolled=rolled, keys=keys, document_key=document_key)
    return compacted.rows


def _publish_without_rows(compacted: CompactedDay, *, name: str) -> None:
    listing = compacted.listing
    if not listing.hours:
        withdraw_partition(tenant=listing.tenant, day=listing.day)
        return
    nothing = Build(
        name=name,
        file="",
        rows=0,
        bytes=0,
        duplicates=0,
        quarantined=compacted.quarantined,
        hours=compacted.hours,
    )
    publish_partition(listing, nothing)


def _roll_up(log: Path, *, day: date) -> _Rolled:
    directory = log.parent
    files = write_rollups(log, day=day, directory=directory)
    return _Rolled(files, write_document(day_document(DayTables(files)), spill=directory / "document.json"))


def _publish_rollup(
    listing: DayListing, *, name: str, rolled: _Rolled, keys: Mapping[str, str], document_key: str
) -> None:
    tenant, day = listing.tenant, listing.day
    _supersede_rollup(tenant=tenant, day=day)
    DayRollup.objects.update_or_create(
        tenant_id=tenant,
        day=day,
        defaults={
            "build": name,
            "version": ROLLUP_VERSION,
            "files": dict(keys),
            "bytes": sum(path.stat().st_size for path in rolled.files.values()),
            "built_at": now(),
        },
    )
    save_document(
        tenant=tenant,
        kind=Kind.DAY,
        period=day.isoformat(),
        document=rolled.document,
        source=name,
        file=document_key,
    )


def _withdraw_rollup(*, tenant: uuid.UUID, day: date) -> None:
    _supersede_rollup(tenant=tenant, day=day)
    DayRollup.objects.filter(tenant_id=tenant, day=day).delete()
    withdraw_documents(tenant=tenant, period=day.isoformat(), kinds=[Kind.DAY])


def _supersede_rollup(*, tenant: uuid.UUID, day: date) -> None:
    for files in DayRollup.objects.filter(tenant_id=tenant, day=day).values_list("files", flat=True):
        supersede(files.values())


def _remove_orphans(store: ObjectStore, *, tenant: uuid.UUID, day: date) -> None:
    """Delete what builds that were killed before they published left behind. Runs under the day's lock."""
    named = set(Partition.objects.filter(tenant_id=tenant, day=day).values_list("file", flat=True))
    for files in DayRollup.objects.filter(tenant_id=tenant, day=day).values_list("files", flat=True):
        named.update(files.values())
    documents = SummaryDocument.objects.filter(tenant_id=tenant, kind=Kind.DAY, period=day.isoformat())
    named.update(documents.values_list("file", flat=True))
    for prefix in (compacted_prefix(tenant, day), rollup_prefix(tenant, day)):
        remove_orphans(store, prefix=prefix, named=named)
