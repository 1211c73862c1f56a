"""Finished documents and rollups in the database: writing in one step, reading as they go out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.encoding import encode_document
from analytics.models import DayRollup, Kind, SummaryDocument
from analytics.periods import DayBuild
from analytics.source import RolledDay
from tenantadmin.http.timestamps import now

if TYPE_CHECKING:
    from datetime import date
    from uuid import UUID

    from tenantadmin.objectstore import ObjectStore


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it goes out, and its strong ETag with quotes."""

    body: bytes
    etag: str


def save_document(*, tenant: UUID, kind: Kind, period: str, document: dict[str, Any], source: str) -> None:
    """Store a finished document, replacing the one before."""
    body = encode_document(document)
    SummaryDocument.objects.update_or_create(
        tenant_id=tenant,
        kind=kind,
        period=period,
        defaults={"body": body, "etag": etag_of(body), "source": source, "built_at": now()},
    )


def read_document(*, tenant: UUID, kind: Kind, period: str) -> StoredDocument | None:
    """The stored document, or None where the period has no entry."""
    found = (
        SummaryDocument.objects.filter(tenant_id=tenant, kind=kind, period=period)
        .values_list("body", "etag")
        .first()
    )
    return None if found is None else StoredDocument(bytes(found[0]), found[1])


def read_etag(*, tenant: UUID, kind: Kind, period: str) -> str | None:
    """The stored document's ETag without its body, or None where the period has no entry."""
    return (
        SummaryDocument.objects.filter(tenant_id=tenant, kind=kind, period=period)
        .values_list("etag", flat=True)
        .first()
    )


def etag_of(body: bytes) -> str:
    """A strong ETag over a document's bytes."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def day_builds(*, tenant: UUID) -> list[DayBuild]:
    """The rolled-up days of a tenant, oldest first."""
    rows = DayRollup.objects.filter(tenant_id=tenant).order_by("day").values_list("day", "build", "version")
    return [DayBuild(day, f"{build} {version}") for day, build, version in rows]


def rolled_days(store: ObjectStore, *, tenant: UUID, first: date, last: date) -> list[RolledDay]:
    """The rollups of the days from ``first`` to ``last``, oldest first, where an engine finds them."""
    rows = DayRollup.objects.filter(tenant_id=tenant, day__range=(first, last)).order_by("day")
    return [
        RolledDay(day, {table: store.uri(key) for table, key in files.items()})
        for day, files in rows.values_list("day", "files")
    ]


def stored_activity(*, tenant: UUID, first: date, last: date) -> list[dict[str, Any]]:
    """The activity entries of the days from ``first`` to ``last``, oldest first."""
    rows = DayRollup.objects.filter(tenant_id=tenant, day__range=(first, last)).order_by("day")
    return list(rows.values_list("activity", flat=True))
