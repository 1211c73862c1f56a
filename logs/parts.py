"""The parts of a day that is built by hours: their rows, locks and files."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from logs.layout import parts_prefix
from logs.models import DayPart, Partition, SupersededFile
from logs.partitions import supersede_replaced
from tenantadmin.lib.database.locks import Busy, build_lock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from datetime import date
    from uuid import UUID

    from tenantadmin.lib.objectstore import ObjectStore


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
