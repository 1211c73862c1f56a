"""Which tenants a caller holds a scope on, for everything that lists or filters.

Contract: Authentication. One tenant is asked of `Principal.scopes_on_tenant`; this is the same answer for
all of them at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db.models import Q

from accounts.access.principal import WILDCARD
from accounts.access.scopes import MEMBERS_ONLY, Scope
from accounts.models import Tenant

if TYPE_CHECKING:
    from accounts.access.principal import Principal


@dataclass(frozen=True, slots=True)
class Reach:
    """Every tenant, or those with the ids named."""

    everywhere: bool
    tenant_ids: frozenset[UUID] = frozenset()

    def __contains__(self, tenant_id: UUID) -> bool:
        return self.everywhere or tenant_id in self.tenant_ids

    def as_filter(self, field: str) -> Q:
        """Return the filter that keeps rows whose ``field`` is a tenant within reach."""
        return Q() if self.everywhere else Q(**{f"{field}__in": self.tenant_ids})


EVERYWHERE: Final = Reach(everywhere=True)


def reach_of(principal: Principal, *scopes: Scope) -> Reach:
    """Return the tenants, deleted ones too, where ``principal`` holds one of ``scopes`` (one query)."""
    rights, claims = principal.rights, principal.claims
    wanted = frozenset(scopes)
    if principal.is_platform_admin and (wanted - MEMBERS_ONLY) & claims.scopes:
        return EVERYWHERE
    tenant_ids = {*rights.memberships, *rights.tenant_grants, *_uuids(claims.tenants)}
    account_ids = {*rights.account_grants, *_uuids(claims.accounts)}
    if not tenant_ids and not account_ids:
        return Reach(everywhere=False)
    candidates = Tenant.objects.filter(Q(pk__in=tenant_ids) | Q(account__in=account_ids)).values_list(
        "pk", "account_id"
    )
    return Reach(
        everywhere=False,
        tenant_ids=frozenset(
            tenant_id
            for tenant_id, account_id in candidates
            if wanted & principal.scopes_on_tenant(tenant_id=tenant_id, account_id=account_id)
        ),
    )


def visible_memberships(principal: Principal, email: str) -> Reach:
    """Return the tenants whose memberships ``principal`` sees of the user under ``email``."""
    if principal.is_platform_admin or (principal.claims.is_sign_in and email == principal.email):
        return EVERYWHERE
    return reach_of(principal, Scope.CONFIG_READ, Scope.USERS_READ)


def _uuids(names: frozenset[str]) -> set[UUID]:
    return {UUID(name) for name in names if name != WILDCARD}
