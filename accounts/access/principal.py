"""The caller of a request: the claims of its token, and the rights that the database gives it now.

A caller may do what both allow. Contract: Authentication. Views and services get a `Principal`, never a
credential.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from accounts.access.reach import NO_SCOPES, Access, Reach
from accounts.access.scopes import (
    ABOUT_USERS,
    ACCOUNT_OWNER_SCOPES,
    ALL_SCOPES,
    MEMBERS_ONLY,
    MEMBERSHIP_SCOPES,
    PAT_ONLY,
    PLATFORM_ADMIN_SCOPES,
    READ_SCOPES,
    SUPPORT_SCOPES,
    Scope,
)
from accounts.models.users import PrimaryRole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

WILDCARD: Final = "*"


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a verified access token. ``expires_at`` is in epoch seconds."""

    subject: str
    token_id: str
    expires_at: int
    role: str
    scopes: frozenset[Scope]
    tenants: frozenset[UUID]
    accounts: frozenset[UUID]
    #: The epoch of the user when the token was minted.
    epoch: UUID
    #: True if the token names all tenants or all accounts by ``*``.
    has_wildcard: bool
    #: The session or the PAT that the token was minted from; the other is None.
    session: int | None
    personal_access_token: int | None
    tos_required: bool
    #: Which secret of the PAT the token was minted from (`PersonalAccessToken.secret_number`).
    secret_number: int = 1
    #: True for a session that staff began to look at a customer's tenant, and for tokens of its PATs.
    is_staff: bool = False

    @property
    def is_sign_in(self) -> bool:
        """True for a token from signing in or refreshing, false for one minted from a PAT."""
        return self.personal_access_token is None


@dataclass(frozen=True)
class Rights:
    """What the database allows a user now: by role, memberships and owned accounts, and by grants."""

    user_id: int
    email: str
    role: str
    memberships: Mapping[UUID, str]
    owned_accounts: frozenset[UUID]
    #: Scopes from grants that are neither expired nor revoked.
    granted: Reach
    #: Scopes granted to the user itself (``roles.scopes``).
    extra_scopes: frozenset[Scope]
    #: True for a platform admin on a session without the second factor that the role needs: ``role`` is user.
    is_held_back: bool = field(default=False, kw_only=True)
    #: True for a token minted from a PAT of a session that staff began to look at a customer's tenant.
    is_of_staff_session: bool = field(default=False, kw_only=True)
    #: True for support in such a session: `SUPPORT_SCOPES` on every tenant.
    is_support: bool = field(default=False, kw_only=True)
    #: ``[{methods, path}]`` of the PAT behind the token; empty means every endpoint.
    endpoints: tuple[Mapping[str, Any], ...]

    @property
    def is_platform_admin(self) -> bool:
        return self.role == PrimaryRole.ADMIN

    def from_membership(self, tenant_id: UUID) -> frozenset[Scope]:
        """Return the scopes that the user's membership alone gives on a tenant."""
        return self.own_on_tenants.tenants.get(tenant_id, NO_SCOPES) | self._of_staff.get(
            tenant_id, NO_SCOPES
        )

    @cached_property
    def own_on_tenants(self) -> Reach:
        """The scopes on tenants from role and memberships."""
        by_role = {role: self._limit(scopes) for role, scopes in MEMBERSHIP_SCOPES.items()}
        tenants = {tenant_id: by_role[role] for tenant_id, role in self.memberships.items()}
        return Reach(everywhere=self._everywhere, tenants=tenants)

    @cached_property
    def own_on_accounts(self) -> Reach:
        """The scopes on accounts from role and ownership. Owning an account gives no scope on its tenants."""
        return Reach(
            everywhere=self._everywhere if self.is_platform_admin else NO_SCOPES,
            accounts=dict.fromkeys(self.owned_accounts, self._limit(ACCOUNT_OWNER_SCOPES)),
        )

    @cached_property
    def on_tenants(self) -> Reach:
        """The scopes on tenants, grants included."""
        return self.own_on_tenants | self.granted | Reach(tenants=self._of_staff)

    @cached_property
    def on_accounts(self) -> Reach:
        """The scopes on accounts themselves, grants included."""
        return self.own_on_accounts | self.granted

    @property
    def _of_staff(self) -> Mapping[UUID, frozenset[Scope]]:
        """The scopes that tell of users, of staff in the dashboard while they are members."""
        if not self.is_of_staff_session:
            return {}
        scopes = PLATFORM_ADMIN_SCOPES & ABOUT_USERS if self.is_platform_admin else {Scope.ANALYTICS_USERS}
        return dict.fromkeys(self.memberships, frozenset(scopes))

    @property
    def _everywhere(self) -> frozenset[Scope]:
        if self.is_platform_admin:
            return PLATFORM_ADMIN_SCOPES - (ABOUT_USERS if self.is_of_staff_session else NO_SCOPES)
        return SUPPORT_SCOPES if self.is_support else NO_SCOPES

    def _limit(self, scopes: frozenset[Scope]) -> frozenset[Scope]:
        """Return ``scopes``; for a guest only the scopes that read."""
        return scopes & READ_SCOPES if self.role == PrimaryRole.GUEST else scopes


@dataclass(frozen=True)
class Principal:
    """An authenticated caller. It is also DRF's ``request.user``."""

    claims: Claims
    rights: Rights

    is_authenticated: Final = True  # DRF reads this from request.user

    @property
    def email(self) -> str:
        return self.rights.email

    @property
    def is_platform_admin(self) -> bool:
        """True if both the token and the database have the role ``admin``; a PAT needs a wildcard too."""
        admin = self.rights.is_platform_admin and self.claims.role == PrimaryRole.ADMIN
        return admin and (self.claims.is_sign_in or self.claims.has_wildcard)

    @property
    def is_platform_wide(self) -> bool:
        """True for a token minted from a platform admin's PAT with wildcard tenants or accounts."""
        return not self.claims.is_sign_in and self.is_platform_admin

    @cached_property
    def on_tenants(self) -> Access:
        """The scopes of the caller on tenants."""
        if self.claims.is_sign_in:
            return self._signed_in(ALL_SCOPES - PAT_ONLY, self.rights.on_tenants)
        return Access(self._claimed_by_pat, self.rights.on_tenants)

    @cached_property
    def on_accounts(self) -> Access:
        """The scopes of the caller on accounts themselves."""
        if self.claims.is_sign_in:
            return self._signed_in(ALL_SCOPES, self.rights.on_accounts)
        return Access(self._claimed_by_pat, self.rights.on_accounts)

    @property
    def on_listed_tenants(self) -> Access:
        """The scopes for lists of tenants: `on_tenants`, but all tenants only for a wildcard PAT.

        A signed-in platform admin may read every tenant, but lists only its own tenants and grants.
        """
        access = self.on_tenants
        if not self.claims.is_sign_in:
            return access
        return replace(access, allowed=replace(access.allowed, everywhere=NO_SCOPES))

    def _signed_in(self, scopes: frozenset[Scope], allowed: Reach) -> Access:
        """Return what the database allows, limited to ``scopes``.

        A sign-in token names scopes, tenants and accounts for verifiers that are offline. They do not limit
        what its user may do here, so that a new tenant or membership counts at once.
        """
        is_staff = self.is_platform_admin or self.rights.is_support
        everywhere = allowed.everywhere if is_staff else NO_SCOPES
        return Access(Reach(everywhere=scopes), replace(allowed, everywhere=everywhere))

    @property
    def _claimed_by_pat(self) -> Reach:
        """Where a token minted from a PAT gives its scopes: on the ids that it names."""
        claims = self.claims
        # For raw logs and SQL the PAT must name the tenant's id; a wildcard or its account is not enough.
        unnamed = claims.scopes - MEMBERS_ONLY
        return Reach(
            everywhere=unnamed if claims.has_wildcard else NO_SCOPES,
            tenants=dict.fromkeys(claims.tenants, claims.scopes),
            accounts=dict.fromkeys(claims.accounts, unnamed),
        )
