"""The documents of a tenant that other apps store.

A tenant has two stored documents: its configuration in this app, and its ruleset in the rules app. This app
must not import the rules app, so ``settings.TENANT_DOCUMENTS`` names the classes that create and delete such
documents.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from django.conf import settings
from django.db.models import Model
from django.utils.module_loading import import_string

from accounts.history import append_revision
from accounts.models.history import RevisionAction, RevisionKind
from accounts.tenants.errors import TenantNotFound

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable
    from uuid import UUID

    from django.db.models import QuerySet

    from accounts.models import Tenant

#: The stored row of a document: a `TenantConfig` or a `Ruleset`.
Row = TypeVar("Row", bound=Model)


class TenantDocument(Protocol):
    """Creates and deletes one document of a tenant, in the transaction that creates or deletes the tenant."""

    def create(self, *, tenant: Tenant, actor: str, at: dt.datetime) -> None:
        """Store the first revision of the document with ``seq`` 0."""

    def delete(self, *, tenant: Tenant, actor: str, at: dt.datetime) -> int:
        """Remove the document and append its ``delete`` revision; return how many were removed (0 or 1)."""


@cache
def _documents(names: tuple[str, ...]) -> tuple[TenantDocument, ...]:
    return tuple(import_string(name)() for name in names)


def tenant_documents() -> tuple[TenantDocument, ...]:
    """Return the documents that the settings name, besides the configuration."""
    return _documents(tuple(settings.TENANT_DOCUMENTS))


def read_row(model: type[Row], tenant_id: UUID) -> Row:
    """Return the row of a live tenant's document, with the tenant and its account.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    rows: QuerySet[Row] = model._default_manager.select_related("tenant__account")
    row = rows.filter(pk=tenant_id, tenant__deleted_at__isnull=True).first()
    if row is None:
        raise TenantNotFound
    return row


def remove_row(
    model: type[Row],
    *,
    kind: RevisionKind,
    tenant: Tenant,
    actor: str,
    at: dt.datetime,
    summarize: Callable[[Row], dict[str, Any]],
) -> int:
    """Remove a tenant's document and append its ``delete`` revision; return how many were removed (0, 1)."""
    row: Any = model._default_manager.filter(pk=tenant.pk).first()
    if row is None:
        return 0
    summary = summarize(row)
    row.delete()
    append_revision(
        kind=kind,
        account_id=tenant.account_id,
        tenant_id=tenant.pk,
        seq=row.seq + 1,
        action=RevisionAction.DELETE,
        actor=actor,
        changed_at=at,
        summary=summary,
        document=None,
    )
    return 1
