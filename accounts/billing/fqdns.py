"""Look up which tenant holds a host name. Contract: FQDNs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from msgspec import Meta

from accounts.access.scopes import Scope
from accounts.billing.errors import FqdnNotFound
from accounts.models import Fqdn, Tenant
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

    from accounts.access.principal import Principal


FqdnState: TypeAlias = Literal["claimed", "tombstoned"]


class FqdnDocument(JsonStruct):
    """The tenant that a host name belongs to."""

    fqdn: str
    tenant_id: UUID
    state: FqdnState
    until: Annotated[Timestamp | None, Meta(description="When a tombstone frees the name.")] = None


def fqdn_document(fqdn: Fqdn) -> FqdnDocument:
    """Return the contract's Fqdn."""
    freed_at = None if fqdn.released_at is None else fqdn.released_at + settings.TOMBSTONE_LIFETIME
    return FqdnDocument(
        fqdn=fqdn.name,
        tenant_id=fqdn.tenant_id,
        state="claimed" if freed_at is None else "tombstoned",
        until=None if freed_at is None else format_timestamp(freed_at),
    )


def list_fqdns(principal: Principal, *, tenant_id: UUID | None) -> Iterator[str]:
    """Yield the host names of the tenants of the caller's accounts, sorted, in bounded memory."""
    held = _held_fqdns(principal)
    if tenant_id is not None:
        held = held.filter(tenant_id=tenant_id)
    return held.order_by("name").values_list("name", flat=True).iterator(chunk_size=2000)


def read_fqdn(principal: Principal, name: str) -> Fqdn:
    """Return the row of a host name that a tenant holds.

    Raises:
        FqdnNotFound: no tenant holds it, or the caller may not read the tenant's account.
    """
    fqdn = _held_fqdns(principal).filter(name=name).first()
    if fqdn is None:
        raise FqdnNotFound
    return fqdn


def remove_old_fqdns() -> int:
    """Remove the tombstones of host names that are free again; return how many."""
    removed, _ = Fqdn.objects.filter(released_at__lte=now() - settings.TOMBSTONE_LIFETIME).delete()
    return removed


def _held_fqdns(principal: Principal) -> QuerySet[Fqdn]:
    is_held = Q(released_at__isnull=True) | Q(released_at__gt=now() - settings.TOMBSTONE_LIFETIME)
    held = Fqdn.objects.filter(is_held)
    if Scope.CONFIG_READ in principal.on_accounts.everywhere:
        return held
    of_accounts = principal.on_accounts.as_q(Scope.CONFIG_READ, account="account_id")
    return held.filter(tenant_id__in=Tenant.objects.filter(of_accounts).values("pk"))
