"""Publish and withdraw compacted days and their hours, and delete the files that they replace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection, transaction

from logs.compaction.rows import HourState, InvalidEntry, PreviousBuild
from logs.layout import parts_prefix
from logs.models import DayPart, Partition, QuarantinedEntry, SupersededFile
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import Busy, build_lock

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from logs.compaction.build import TableNames
    from logs.layout import DayListing
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


def lock_part(
    *, tenant: UUID, day: date, stage: str, number: int, wait: bool
) -> AbstractContextManager[None]:
    """Hold the lock of one part: only one worker builds it.

    Raises:
        Busy: another worker holds it, and ``wait`` is false.
    """
    return build_lock(tenant=tenant, period=f"{day} {stage} {number}", wait=wait)


def lock_files(*, tenant: UUID, day: date) -> None:
    """Lock the file names of a day and its parts until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"files {tenant} {day}"])


def read_parts(*, tenant: UUID, day: date, stage: str) -> dict[int, DayPart]:
    """Return the parts of one stage by number, in order."""
    rows = DayPart.objects.filter(tenant_id=tenant, day=day, stage=stage).order_by("number")
    return {row.number: row for row in rows}


def part_key(part: DayPart, name: str) -> str:
    """Return the key of a file of a part."""
    return f"{parts_prefix(part.tenant_id, part.day)}{part.stage}{part.number:02}-{part.build}.{name}"


def save_part(part: DayPart) -> None:
    """Replace the row of a part, whose files are stored, and supersede the files that it replaces."""
    which: Any = {"tenant_id": part.tenant_id, "day": part.day, "stage": part.stage, "number": part.number}
    with transaction.atomic():
        lock_files(tenant=part.tenant_id, day=part.day)
        before = DayPart.objects.filter(**which).first()
        fields = ("build", "source", "files", "bytes", "facts", "built_at")
        DayPart.objects.update_or_create(**which, defaults={name: getattr(part, name) for name in fields})
        if before is not None:
            supersede_replaced(before.files.values(), tenant=part.tenant_id, day=part.day)


def drop_parts(parts: Mapping[Any, DayPart]) -> None:
    """Remove parts without rows, or of a day that is no longer built by hours."""
    for part in parts.values():
        with transaction.atomic():
            lock_files(tenant=part.tenant_id, day=part.day)
            DayPart.objects.filter(pk=part.pk).delete()
            supersede_replaced(part.files.values(), tenant=part.tenant_id, day=part.day)


def mark_damaged(store: ObjectStore, *, tenant: UUID, day: date) -> None:
    """Mark parts as stale if a file is missing or has another size. The caller holds the day's lock."""
    stored = {entry.key: entry.size for entry in store.list(parts_prefix(tenant, day))}
    for part in DayPart.objects.filter(tenant_id=tenant, day=day):
        if part.bytes != sum(stored.get(key, 0) for key in part.files.values()):
            part.source = ""
            part.save(update_fields=["source"])


def remove_unnamed(store: ObjectStore, *, tenant: UUID, day: date) -> None:
    """Delete the files that killed builds left and no row names. The caller holds the day's lock."""
    stored = {entry.key for entry in store.list(parts_prefix(tenant, day))}
    if not stored:
        return
    for key in stored - _named(tenant, day):
        stage_and_number = key.rpartition("/")[2].partition("-")[0]
        stage, number = stage_and_number[:-2], int(stage_and_number[-2:])
        # A worker may be about to save a row with this name.
        with suppress(Busy), lock_part(tenant=tenant, day=day, stage=stage, number=number, wait=False):
            if key not in _named(tenant, day):
                store.delete(key)


def _named(tenant: UUID, day: date) -> set[str]:
    """Return the keys that rows name, superseded ones included."""
    parts = DayPart.objects.filter(tenant_id=tenant, day=day).values_list("files", flat=True)
    superseded = SupersededFile.objects.filter(key__startswith=parts_prefix(tenant, day))
    return set(superseded.values_list("key", flat=True)).union(
        *(files.values() for files in parts),
        *(partition.files for partition in Partition.objects.filter(tenant_id=tenant, day=day)),
    )
