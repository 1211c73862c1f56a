"""The compacted days of a tenant: publishing a build in one step, and what readers may open."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction

from logs.compaction.base import Base, HourState
from logs.compaction.batches import Quarantined
from logs.models import Partition, QuarantinedEntry, SupersededFile
from tenantadmin.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date
    from uuid import UUID

    from logs.listing import DayListing
    from tenantadmin.objectstore import ObjectStore

#: Longer than any query or summary may run: until then someone may be reading a superseded file.
GRACE: Final = timedelta(minutes=10)

_QUARANTINE_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class Build:
    """A finished build of a day, before anyone sees it."""

    name: str
    file: str
    rows: int
    bytes: int
    duplicates: int
    quarantined: Sequence[Quarantined]
    hours: Mapping[int, HourState]


def publish_partition(listing: DayListing, build: Build) -> None:
    """Make ``build`` the day's partition, with its quarantine list, in one step.

    Runs in the caller's transaction where there is one, so that more can change in the same step.
    """
    tenant, day = listing.tenant, listing.day
    with transaction.atomic():
        before = Partition.objects.filter(tenant_id=tenant, day=day).first()
        if before is not None and before.file and before.file != build.file:
            supersede([before.file])
        Partition.objects.update_or_create(
            tenant_id=tenant,
            day=day,
            defaults={
                "listing_digest": listing.digest,
                "build": build.name,
                "file": build.file,
                "rows": build.rows,
                "bytes": build.bytes,
                "objects_read": listing.count,
                "duplicates": build.duplicates,
                "quarantined": len(build.quarantined),
                "hours": {str(hour): asdict(state) for hour, state in build.hours.items()},
                "built_at": now(),
            },
        )
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
                for item in build.quarantined
            ),
            batch_size=_QUARANTINE_BATCH,
        )


def partition_base(*, tenant: UUID, day: date) -> Base | None:
    """The day's present build, as far as the next one may take rows from it."""
    row = Partition.objects.filter(tenant_id=tenant, day=day).exclude(file="").exclude(hours={}).first()
    if row is None:
        return None
    quarantined = QuarantinedEntry.objects.filter(tenant_id=tenant, day=day).order_by("id")
    return Base(
        row.file,
        row.rows,
        {
            int(hour): HourState(state["digest"], state["duplicates"], tuple(state["superseded_by"]))
            for hour, state in row.hours.items()
        },
        [Quarantined(*item) for item in quarantined.values_list("key", "position", "reason")],
    )


def withdraw_partition(*, tenant: UUID, day: date) -> None:
    """Remove a day whose raw objects are all gone."""
    with transaction.atomic():
        supersede(
            Partition.objects.filter(tenant_id=tenant, day=day)
            .exclude(file="")
            .values_list("file", flat=True)
        )
        Partition.objects.filter(tenant_id=tenant, day=day).delete()
        QuarantinedEntry.objects.filter(tenant_id=tenant, day=day).delete()


def supersede(keys: Iterable[str]) -> None:
    """Note files that no row names any more, for deletion after the grace period."""
    SupersededFile.objects.bulk_create([SupersededFile(key=key) for key in keys], ignore_conflicts=True)


def delete_superseded(store: ObjectStore) -> int:
    """Delete superseded files whose grace period is over; returns how many."""
    due = list(SupersededFile.objects.filter(superseded_at__lt=now() - GRACE)[:10_000])
    for row in due:
        store.delete(row.key)
        row.delete()
    return len(due)
