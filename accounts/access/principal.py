"""The caller of a request: the claims of its token, and the rights that the database gives it now.

A caller may do what both allow. Contract: Authentication. Views and services get a `Principal`, never a
credential. The check of one tenant or account and the filter of a list use the same fields, so they always
agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

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

WILDCARD: Final = "*"
NO_SCOPES: Final[frozenset[Scope]] = frozenset()


@dataclass(frozen=True, slots=True)
class Reach:
    """Scopes by where they apply: everywhere, on tenants, and on accounts with all their tenants."""

    everywhere: frozenset[Scope] = NO_SCOPES
    tenants: Mapping[UUID, frozenset[Scope]] = field(default_factory=dict)
    accounts: Mapping[UUID, frozenset[Scope]] = field(default_factory=dict)

    def __or__(self, other: Reach) -> Reach:
        return Reach(
            everywhere=self.everywhere | other.everywhere,
            tenants=_merge(self.tenants, other.tenants),
            accounts=_merge(self.accounts, other.accounts),
        )

    def scopes_on(self, *, tenant_id: UUID | None = None, account_id: UUID | None) -> frozenset[Scope]:
        """Return the scopes on a tenant of an account, or without ``tenant_id`` on the account itself."""
        scopes = self.everywhere
        if tenant_id is not None:
            scopes |= self.tenants.get(tenant_id, NO_SCOPES)
        if account_id is not None:
            scopes |= self.accounts.get(account_id, NO_SCOPES)
        return scopes

    def as_q(self, scope: Scope, *, tenant: str | None = None, account: str) -> Q:
        """Return the filter for rows whose tenant or account has ``scope``.

        ``tenant`` and ``account`` name the fields with the ids. Rows about accounts have no ``tenant``.
        """
        if scope in self.everywhere:
            return Q()
        on_account = Q(**{f"{account}__in": _ids_with(scope, self.accounts)})
        return (
            on_account
            if tenant is None
            else on_account | Q(**{f"{tenant}__in": _ids_with(scope, self.tenants)})
        )


@dataclass(frozen=True, slots=True)
class Access:
    """The scopes of a caller, which its token claims and the database allows."""

    claimed: Reach
    allowed: Reach

    @property
    def everywhere(self) -> frozenset[Scope]:
        """The scopes on every tenant and account."""
        return self.claimed.everywhere & self.allowed.everywhere

    @property
    def needs_account(self) -> bool:
        """True if scopes on accounts exist, so that `scopes_on` a tenant needs the id of its account."""
        return bool(self.claimed.accounts or self.allowed.accounts)

    def scopes_on(self, *, tenant_id: UUID | None = None, account_id: UUID | None) -> frozenset[Scope]:
        """Return the scopes on a tenant of an account, or without ``tenant_id`` on the account itself.

        ``account_id`` may be None for a tenant if `needs_account` is false.
        """
        claimed = self.claimed.scopes_on(tenant_id=tenant_id, account_id=account_id)
        return claimed & self.allowed.scopes_on(tenant_id=tenant_id, account_id=account_id)

    def as_q(self, scope: Scope, *, tenant: str | None = None, account: str) -> Q:
        """Return the filter for rows whose tenant or account has ``scope``; see `Reach.as_q`."""
        claimed = self.claimed.as_q(scope, tenant=tenant, account=account)
        return claimed & self.allowed.as_q(scope, tenant=tenant, account=account)


def _ids_with(scope: Scope, scopes_by_id: Mapping[UUID, frozenset[Scope]]) -> list[UUID]:
    return [key for key, scopes in scopes_by_id.items() if scope in scopes]


def _merge(
    one: Mapping[UUID, frozenset[Scope]], other: Mapping[UUID, frozenset[Scope]]
) -> Mapping[UUID, frozenset[Scope]]:
    return {**one, **{key: one.get(key, NO_SCOPES) | scopes for key, scopes in other.items()}}


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
