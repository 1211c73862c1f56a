"""Who is asking: a token's claims and the rights that the database holds now, as one frozen value.

A request may do what both allow (contract: Authentication). Views and services ask a `Principal`; none
of them sees a credential.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from accounts.access.scopes import (
    MEMBERS_ONLY,
    MEMBERSHIP_SCOPES,
    PAT_ONLY,
    PLATFORM_ADMIN_SCOPES,
    READ_SCOPES,
    Scope,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

WILDCARD: Final = "*"


@dataclass(frozen=True, slots=True)
class Claims:
    """What a verified access token says."""

    subject: str
    token_id: str
    expires_at: int
    role: str
    scopes: frozenset[Scope]
    tenants: frozenset[str]
    accounts: frozenset[str]
    personal_access_token: int | None = None
    tos_required: bool = False

    @property
    def is_sign_in(self) -> bool:
        """True for a token from signing in or refreshing, false for one minted from a PAT."""
        return self.personal_access_token is None

    @property
    def has_wildcard(self) -> bool:
        """True where the token reaches every tenant or every account."""
        return WILDCARD in self.tenants or WILDCARD in self.accounts


@dataclass(frozen=True, slots=True)
class Rights:
    """What the database allows the user now."""

    user_id: int
    email: str
    role: str
    memberships: Mapping[UUID, str] = field(default_factory=dict)
    tenant_grants: Mapping[UUID, frozenset[Scope]] = field(default_factory=dict)
    account_grants: Mapping[UUID, frozenset[Scope]] = field(default_factory=dict)
    owned_accounts: frozenset[UUID] = frozenset()
    #: Scopes granted to the user itself (``roles.scopes``).
    extra_scopes: frozenset[Scope] = frozenset()
    #: ``[{methods, path}]`` of the PAT behind the token; empty means every endpoint.
    endpoints: tuple[Mapping[str, Any], ...] = ()

    @property
    def is_platform_admin(self) -> bool:
        return self.role == "admin"

    def without_grants(self) -> Rights:
        """Return what role and memberships alone bring: what is handed on outlives a grant that ends."""
        return replace(self, tenant_grants={}, account_grants={})

    def on_tenant(self, *, tenant_id: UUID, account_id: UUID | None) -> frozenset[Scope]:
        """Return what role, membership and grants together allow on a tenant."""
        allowed: frozenset[Scope] = PLATFORM_ADMIN_SCOPES if self.is_platform_admin else frozenset()
        membership = self.memberships.get(tenant_id)
        if membership is not None:
            brought = MEMBERSHIP_SCOPES[membership]
            allowed |= brought & READ_SCOPES if self.role == "guest" else brought
        allowed |= self.tenant_grants.get(tenant_id, frozenset())
        if account_id is not None:
            allowed |= self.account_grants.get(account_id, frozenset())
        return allowed


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller. Doubles as DRF's ``request.user``."""

    claims: Claims
    rights: Rights

    is_authenticated: Final = True  # what DRF asks of request.user

    @property
    def email(self) -> str:
        return self.rights.email

    @property
    def is_platform_admin(self) -> bool:
        """True where both the token and the database say ``admin``; a PAT says so by a wildcard."""
        admin = self.rights.is_platform_admin and self.claims.role == "admin"
        return admin and (self.claims.is_sign_in or self.claims.has_wildcard)

    @property
    def is_platform_wide(self) -> bool:
        """True for a token minted from a PAT with wildcard tenants or accounts, held by a platform admin."""
        return not self.claims.is_sign_in and self.is_platform_admin

    def token_names_tenant(self, *, tenant_id: UUID, account_id: UUID | None) -> bool:
        """Tell whether the token reaches a tenant, by its id, by its account or by a wildcard."""
        claims = self.claims
        if str(tenant_id) in claims.tenants:
            return True
        if claims.is_sign_in:
            granted = tenant_id in self.rights.tenant_grants or (
                account_id is not None and account_id in self.rights.account_grants
            )
            return self.is_platform_admin or granted
        if claims.has_wildcard:
            return True
        return account_id is not None and str(account_id) in claims.accounts

    def scopes_on_tenant(self, *, tenant_id: UUID, account_id: UUID | None) -> frozenset[Scope]:
        """Return what the caller may do on a tenant: the token's scopes that the database allows too."""
        if not self.token_names_tenant(tenant_id=tenant_id, account_id=account_id):
            return frozenset()
        scopes = self.rights.on_tenant(tenant_id=tenant_id, account_id=account_id) & self.claims.scopes
        if self.claims.is_sign_in:
            return scopes - PAT_ONLY
        # Raw logs and SQL: neither a wildcard nor an account stands for the name of a tenant.
        return scopes if str(tenant_id) in self.claims.tenants else scopes - MEMBERS_ONLY
