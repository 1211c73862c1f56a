"""Store documents and rollups in the database, and read them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import connection
from django.db.models import Q

from analytics.models import DayRollup, Kind, MergedRollup, SummaryDocument
from analytics.summaries.periods import HISTORY, DayBuild, period_bounds
from analytics.summaries.rollup_schema import FIRST_LOG_VERSION, NO_VERSION, ROLLUP_VERSION
from logs.models import Partition
from logs.partitions import supersede
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import date
    from pathlib import Path
    from uuid import UUID

    from tenantadmin.lib.objectstore import ObjectStore

#: A larger document is stored as an object, and is never in memory as a whole.
INLINE_BYTES: Final = 16 << 10
#: The ORM takes longer to build this query than PostgreSQL to answer it. Dashboards send it most.
_READ_DOCUMENT: Final = (
    f"SELECT body, file, bytes, etag FROM {SummaryDocument._meta.db_table}"  # noqa: S608  # the table's name is not input
    " WHERE tenant_id = %s AND kind = %s AND period = %s"
)


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """A new document as JSON: ``body``, or the local file ``path`` if it is large. ``etag`` has quotes."""

    body: bytes
    path: Path | None
    bytes: int
    etag: str


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A stored document as JSON: ``body``, or the object ``file`` if it is large. ``etag`` has quotes."""

    body: bytes
    file: str
    bytes: int
    etag: str


@dataclass(frozen=True, slots=True)
class StoredRollup:
    """The current rollups of a month or a year. ``files`` maps table names to object keys."""

    build: str
    source: str
    files: Mapping[str, str]
    version: int


def write_document(pieces: Iterable[bytes], *, spill: Path) -> WrittenDocument:
    """Join the pieces of a document. A document above `INLINE_BYTES` is written to the file ``spill``."""
    digest = hashlib.sha256()
    size = 0
    in_memory: list[bytes] = []
    stream = None
    try:
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
            if stream is not None:
                stream.write(piece)
                continue
            in_memory.append(piece)
            if size > INLINE_BYTES:
                stream = spill.open("wb")
                stream.writelines(in_memory)
                in_memory = []
    finally:
        if stream is not None:
            stream.close()
    etag = f'"{digest.hexdigest()[:32]}"'
    return WrittenDocument(b"".join(in_memory), None if stream is None else spill, size, etag)


def save_document(
    *, tenant: UUID, kind: Kind, period: str, document: WrittenDocument, source: str, file: str = ""
) -> None:
    """Store a document, and replace the previous one.

    Args:
        source: a digest of the builds that it was computed from.
        file: the key of its object, if the document is too large for a row.
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
    """Remove the documents of a period without days."""
    kinds = list(kinds)
    _supersede_documents(tenant=tenant, period=period, kinds=kinds)
    SummaryDocument.objects.filter(tenant_id=tenant, period=period, kind__in=kinds).delete()


def _supersede_documents(*, tenant: UUID, period: str, kinds: list[Kind]) -> None:
    stored = SummaryDocument.objects.filter(tenant_id=tenant, period=period, kind__in=kinds)
    supersede(stored.exclude(file="").values_list("file", flat=True))


def read_document(*, tenant: UUID, kind: Kind, period: str) -> StoredDocument | None:
    """Return the stored document, or None if the period has no log entry."""
    with connection.cursor() as cursor:
        cursor.execute(_READ_DOCUMENT, [tenant, kind, period])
        row = cursor.fetchone()
    return None if row is None else StoredDocument(bytes(row[0]), *row[1:])


def day_builds(*, tenant: UUID, period: str = HISTORY) -> list[DayBuild]:
    """Return the builds of the days of a tenant in ``period`` that have rollups, oldest first."""
    rows = DayRollup.objects.filter(tenant_id=tenant, day__range=period_bounds(period)).order_by("day")
    return [
        DayBuild(day, f"{build} {version}", files, is_outdated=version != ROLLUP_VERSION)
        for day, build, version, files in rows.values_list("day", "build", "version", "files")
    ]


def has_outdated_days(*, tenant: UUID, period: str) -> bool:
    """Return True if a day in ``period`` must be rolled up again after an upgrade."""
    days = DayRollup.objects.filter(tenant_id=tenant, day__range=period_bounds(period))
    return days.exclude(version=ROLLUP_VERSION).exists()


def outdated_day_log(*, tenant: UUID, day: date) -> str:
    """Return the key of the Parquet file that an outdated day can be rolled up from, or an empty text.

    It is empty if the file is too old. It is empty too if the day has several files, because a request must
    be fast.
    """
    versions = Q(version__gte=FIRST_LOG_VERSION) | Q(version=NO_VERSION)
    rollups = DayRollup.objects.filter(versions, tenant_id=tenant, day=day)
    logs = Partition.objects.filter(
        tenant_id=tenant, day=day, build__in=rollups.values("build"), more_files=[]
    )
    return logs.values_list("file", flat=True).first() or ""


def read_merged_rollups(*, tenant: UUID, periods: Collection[str] | None = None) -> dict[str, StoredRollup]:
    """Return the merged rollups of months and years, by period: all, or only ``periods``."""
    rows = MergedRollup.objects.filter(tenant_id=tenant)
    if periods is not None:
        rows = rows.filter(period__in=periods)
    return {
        period: StoredRollup(*stored)
        for period, *stored in rows.values_list("period", "build", "source", "files", "version")
    }


def table_uris(store: ObjectStore, files: Mapping[str, str]) -> dict[str, str]:
    """Return by table name the address that DuckDB opens for each file."""
    return {table: store.uri(key) for table, key in files.items()}
