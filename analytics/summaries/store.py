"""Finished documents and rollups in the database: writing in one step, reading as they go out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db.models import Q

from analytics.models import DayRollup, Kind, MergedRollup, SummaryDocument
from analytics.summaries.periods import HISTORY, DayBuild, period_bounds
from analytics.summaries.rollup_tables import FIRST_LOG_VERSION, NO_VERSION, ROLLUP_VERSION
from logs.models import Partition
from logs.partitions import supersede
from tenantadmin.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import date
    from pathlib import Path
    from uuid import UUID

    from tenantadmin.objectstore import ObjectStore

#: A document above this is an object of its own, and is never held in memory whole.
INLINE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Written:
    """A document as it goes out: in memory where it is small, else in a local file. ``etag`` with quotes."""

    body: bytes
    path: Path | None
    bytes: int
    etag: str


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A stored document: ``body``, or the key of its object. ``etag`` with quotes."""

    body: bytes
    file: str
    bytes: int
    etag: str


@dataclass(frozen=True, slots=True)
class Merged:
    """The current rollups of a month or a year; ``files`` are table name to object key."""

    build: str
    source: str
    files: Mapping[str, str]


def write_document(pieces: Iterable[bytes], *, spill: Path) -> Written:
    """Gather a document; one above `INLINE_BYTES` goes to the file ``spill``."""
    digest = hashlib.sha256()
    size = 0
    held: list[bytes] = []
    stream = None
    try:
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
            if stream is not None:
                stream.write(piece)
                continue
            held.append(piece)
            if size > INLINE_BYTES:
                stream = spill.open("wb")
                stream.writelines(held)
                held = []
    finally:
        if stream is not None:
            stream.close()
    etag = f'"{digest.hexdigest()[:32]}"'
    return Written(b"".join(held), None if stream is None else spill, size, etag)


def save_document(
    *, tenant: UUID, kind: Kind, period: str, document: Written, source: str, file: str = ""
) -> None:
    """Store a finished document, replacing the one before.

    Args:
        file: the object that holds it, where it is too large for a row.
    """
    _supersede_documents(tenant=tenant, period=period, kinds=[kind])
    SummaryDocument.objects.update_or_create(
        tenant_id=tenant,
        kind=kind,
        period=period,
        defaults={
            "body": document.body,
            "file": file,
            "bytes": document.bytes,
            "etag": document.etag,
            "source": source,
            "built_at": now(),
        },
    )


def withdraw_documents(*, tenant: UUID, period: str, kinds: Iterable[Kind]) -> None:
    """Remove the documents of a period that has no day left."""
    held = list(kinds)
    _supersede_documents(tenant=tenant, period=period, kinds=held)
    SummaryDocument.objects.filter(tenant_id=tenant, period=period, kind__in=held).delete()


def _supersede_documents(*, tenant: UUID, period: str, kinds: list[Kind]) -> None:
    stored = SummaryDocument.objects.filter(tenant_id=tenant, period=period, kind__in=kinds)
    supersede(stored.exclude(file="").values_list("file", flat=True))


def read_document(*, tenant: UUID, kind: Kind, period: str) -> StoredDocument | None:
    """The stored document, or None where the period has no entry."""
    found = (
        SummaryDocument.objects.filter(tenant_id=tenant, kind=kind, period=period)
        .values_list("body", "file", "bytes", "etag")
        .first()
    )
    return None if found is None else StoredDocument(bytes(found[0]), *found[1:])


def read_etag(*, tenant: UUID, kind: Kind, period: str) -> str | None:
    """The stored document's ETag without its body, or None where the period has no entry."""
    return (
        SummaryDocument.objects.filter(tenant_id=tenant, kind=kind, period=period)
        .values_list("etag", flat=True)
        .first()
    )


def day_builds(*, tenant: UUID, period: str = HISTORY) -> list[DayBuild]:
    """The rolled-up days of a tenant in ``period``, oldest first."""
    rows = DayRollup.objects.filter(tenant_id=tenant, day__range=period_bounds(period)).order_by("day")
    return [
        DayBuild(day, f"{build} {version}", files, is_outdated=version != ROLLUP_VERSION)
        for day, build, version, files in rows.values_list("day", "build", "version", "files")
    ]


def has_outdated_days(*, tenant: UUID, period: str) -> bool:
    """Whether a day in ``period`` waits to be rolled up anew since the service was upgraded."""
    days = DayRollup.objects.filter(tenant_id=tenant, day__range=period_bounds(period))
    return days.exclude(version=ROLLUP_VERSION).exists()


def outdated_day_log(*, tenant: UUID, day: date) -> str:
    """The key of the file from which an outdated day can be rolled up; empty where that is too old."""
    versions = Q(version__gte=FIRST_LOG_VERSION) | Q(version=NO_VERSION)
    rolled = DayRollup.objects.filter(versions, tenant_id=tenant, day=day)
    logs = Partition.objects.filter(tenant_id=tenant, day=day, build__in=rolled.values("build"))
    return logs.values_list("file", flat=True).first() or ""


def merged_rollups(*, tenant: UUID, periods: Collection[str] | None = None) -> dict[str, Merged]:
    """The merged months and years of a tenant, all or those of ``periods``, by period."""
    rows = MergedRollup.objects.filter(tenant_id=tenant)
    if periods is not None:
        rows = rows.filter(period__in=periods)
    return {
        period: Merged(build, source, files)
        for period, build, source, files in rows.values_list("period", "build", "source", "files")
    }


def locate(store: ObjectStore, files: Mapping[str, str]) -> dict[str, str]:
    """Where an engine opens each table's file."""
    return {table: store.uri(key) for table, key in files.items()}
