"""Publish and withdraw compacted days, and delete the files that they replace."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction

from logs.compaction.previous import HourState, PreviousBuild
from logs.compaction.rows import InvalidEntry
from logs.layout import parts_prefix
from logs.models import DayPart, Partition, QuarantinedEntry, SupersededFile
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import date
    from uuid import UUID

    from django.db.models import QuerySet

    from logs.compaction.table_names import TableNames
    from logs.listing import DayListing
    from tenantadmin.lib.objectstore import ObjectStore

#: How long superseded files are kept: longer than a query or summary that still reads one can run.
GRACE: Final = timedelta(minutes=10)

_QUARANTINE_BATCH: Final = 1_000
#: The number of objects that S3 deletes in one request.
_DELETE_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class BuiltPartition:
    """A finished build of a day that is not published yet. ``files`` are in the order of the rows."""

    name: str
    files: Sequence[str]
    objects_read: int
    rows: int
    bytes: int
    duplicates: int
    quarantined: Sequence[InvalidEntry]
    hours: Mapping[int, HourState]
    table_names: TableNames


def describe_longest_window(rows: Mapping[date, int], *, last: date, before: int, most: int) -> str:
    """Say which days up to ``last`` have at most ``most`` rows, where those of all ``rows`` have more.

    The ``before`` days before a window are read too.
    """
    first, after = last, last + timedelta(days=1)
    total = sum(count for day, count in rows.items() if last - timedelta(days=before) <= day <= last)
    while total <= most:
        first, after = first - timedelta(days=1), first
        total += rows.get(first - timedelta(days=before), 0)
    if after > last:
        return f"No window that ends on {last} fits."
    return f"The longest window up to {last} that fits begins on {after}."


def publish_partition(listing: DayListing, built: BuiltPartition) -> None:
    """Replace the day's partition and its quarantine list by ``built``, in one transaction.

    The caller may open the transaction and make more changes in it.
    """
    tenant, day = listing.tenant, listing.day
    with transaction.atomic():
        before = Partition.objects.filter(tenant_id=tenant, day=day).first()
        replaced = set() if before is None else {before.file, *before.more_files} - {"", *built.files}
        Partition.objects.update_or_create(
            tenant_id=tenant,
            day=day,
            defaults={
                "listing_digest": listing.digest,
                "build": built.name,
                "file": next(iter(built.files), ""),
                "more_files": built.files[1:],
                "rows": built.rows,
                "bytes": built.bytes,
                "objects_read": built.objects_read,
                "duplicates": built.duplicates,
                "quarantined": len(built.quarantined),
                "hours": {str(hour): asdict(state) for hour, state in built.hours.items()},
                "table_names": asdict(built.table_names),
                "built_at": now(),
            },
        )
        supersede_replaced(replaced, tenant=tenant, day=day)
        QuarantinedEntry.objects.filter(tenant_id=tenant, day=day).delete()
        QuarantinedEntry.objects.bulk_create(
            (
                QuarantinedEntry(
                    tenant_id=tenant,
                    day=day,
                    key=item.key,
                    position=item.position,
                    reason=item.reason.replace("\0", "�"),
                )
                for item in built.quarantined
            ),
            batch_size=_QUARANTINE_BATCH,
        )


def partitions_with_file(*, tenant: UUID) -> QuerySet[Partition]:
    """Return the days of a tenant that have a Parquet file, oldest first. Days without entries have none."""
    return Partition.objects.filter(tenant_id=tenant).exclude(file="").order_by("day")


def previous_build(*, tenant: UUID, day: date) -> PreviousBuild | None:
    """Return the day's published build, or None if it has no rows that the next build could reuse."""
    row = partitions_with_file(tenant=tenant).filter(day=day).exclude(hours={}).first()
    if row is None:
        return None
    quarantined = QuarantinedEntry.objects.filter(tenant_id=tenant, day=day).order_by("id")
    return PreviousBuild(
        row.file,
        row.rows,
        {
            int(hour): HourState(state["digest"], state["duplicates"], tuple(state["superseded_by"]))
            for hour, state in row.hours.items()
        },
        [InvalidEntry(*item) for item in quarantined.values_list("key", "position", "reason")],
    )


def withdraw_partition(*, tenant: UUID, day: date) -> None:
    """Remove the partition of a day that has no raw objects any more."""
    with transaction.atomic():
        files = {key for row in partitions_with_file(tenant=tenant).filter(day=day) for key in row.files}
        Partition.objects.filter(tenant_id=tenant, day=day).delete()
        supersede_replaced(files, tenant=tenant, day=day)
        QuarantinedEntry.objects.filter(tenant_id=tenant, day=day).delete()


def supersede_replaced(keys: Collection[str], *, tenant: UUID, day: date) -> None:
    """Supersede the ``keys`` that the day and its parts no longer name."""
    if any(key.startswith(parts_prefix(tenant, day)) for key in keys):
        parts = DayPart.objects.filter(tenant_id=tenant, day=day).values_list("files", flat=True)
        partitions = Partition.objects.filter(tenant_id=tenant, day=day)
        keys = set(keys).difference(
            *(files.values() for files in parts), *(partition.files for partition in partitions)
        )
    supersede(keys)


def supersede(keys: Iterable[str]) -> None:
    """Record files that no row names any more, to be deleted after the grace period."""
    SupersededFile.objects.bulk_create([SupersededFile(key=key) for key in keys], ignore_conflicts=True)


def delete_superseded(store: ObjectStore) -> int:
    """Delete all superseded files whose grace period is over. Return how many."""
    deleted = 0
    while due := list(SupersededFile.objects.filter(superseded_at__lt=now() - GRACE)[:_DELETE_BATCH]):
        store.delete_many([row.key for row in due])
        SupersededFile.objects.filter(pk__in=[row.pk for row in due]).delete()
        deleted += len(due)
    return deleted
