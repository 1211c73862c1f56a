"""Read what the service stores of a tenant, for `bench.check_oracle`. Needs Django to be set up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb

from analytics.models import Kind, SummaryDocument
from analytics.summaries.store import read_document
from analytics.summaries.userdocs import find_user_source, user_document
from logs.columns import COLUMNS
from logs.models import Partition
from tenantadmin.lib.objectstore import default_store
from tenantadmin.lib.objectstore.duck import attach_store

if TYPE_CHECKING:
    from datetime import date
    from uuid import UUID


def read_day_file(*, tenant: UUID, day: date) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the names of the contract's columns and ``hour``, and the rows of a day in their order."""
    store = default_store()
    names = [column.name for column in COLUMNS]
    selected = ", ".join(f'"{name}"' for name in names)
    partition = Partition.objects.filter(tenant_id=tenant, day=day).first()
    if partition is None or not partition.file:
        return [*names, "hour"], []
    with duckdb.connect() as connection:
        attach_store(connection, store)
        rows = connection.execute(
            f"SELECT {selected}, _hour FROM read_parquet(?)",
            [[store.uri(key) for key in partition.files]],
        ).fetchall()
    return [*names, "hour"], rows


def read_tenant_document(*, tenant: UUID, kind: str, period: str) -> Any:
    """Return a stored document or None. Leave out what the oracle cannot know: its time, advice in words."""
    stored = read_document(tenant=tenant, kind=Kind(kind), period=period)
    if stored is None:
        return None
    if stored.file:
        with default_store().open(stored.file) as file:
            content = json.load(file)
    else:
        content = json.loads(stored.body)
    content.pop("generatedAt", None)
    if kind == Kind.OPPORTUNITIES:
        for entries in content.values():
            for entry in entries:
                del entry["suggestedAction"]
    return content


def stored_periods(*, tenant: UUID) -> set[tuple[str, str]]:
    """Return kind and period of every stored document."""
    return set(SummaryDocument.objects.filter(tenant_id=tenant).values_list("kind", "period"))


def read_user_document(*, tenant: UUID, user: str, period: str) -> Any:
    """Return a user's document as the API sends it, or None."""
    source = find_user_source(tenant=tenant, user=user, period=period)
    document = None if source is None else user_document(default_store(), source)
    if document is None or isinstance(document, bytes):
        return document and json.loads(document)
    with document:
        return json.load(document)
