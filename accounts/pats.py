"""Personal access tokens as their owners see them. Contract: Authentication, 4.

What one may put into a PAT comes from role and memberships, not from the token that asks; but a PAT that
makes another hands on no more than it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from accounts.access.credentials import create_pat, grantable_scopes
from accounts.access.principal import WILDCARD, Principal, Rights
from accounts.access.reach import NO_SCOPES
from accounts.access.rights import rights_of
from accounts.models import Account, PersonalAccessToken, Tenant, User
from accounts.users import readable_user, unreadable
from tenantadmin.core.errors import Forbidden, NotFound, ValidationFailed
from tenantadmin.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from accounts.access.scopes import Scope


@dataclass(frozen=True, slots=True)
class PatRequest:
    """What a new PAT is asked to be. ``tenants`` and ``accounts`` hold ids, or the wildcard alone."""

    name: str
    scopes: frozenset[Scope]
    tenants: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    endpoints: tuple[Mapping[str, Any], ...] = ()
    expires_at: dt.datetime | None = None

    @property
    def has_wildcard(self) -> bool:
        return WILDCARD in self.tenants or WILDCARD in self.accounts


def list_pats(principal: Principal, *, email: str) -> list[dict[str, Any]]:
    """Return the documents of a user's PATs that are not revoked, newest first.

    Raises:
        Forbidden, NotFound: it is not the caller's own list, or for a platform admin there is no such user.
    """
    owner = _owner(principal, email)
    return [pat_document(pat) for pat in _live(owner).select_related("owner")]


def create_own_pat(principal: Principal, *, email: str, wanted: PatRequest) -> dict[str, Any]:
    """Make a PAT and return its document with ``token``, its text, which is shown this once.

    Raises:
        Forbidden: more than the owner's role and memberships bring, or than the asking PAT has.
        ValidationFailed: an unknown tenant or account, or an expiry in the past.
        NotFound: there is no such user.
    """
    owner = _owner(principal, email)
    require_grantable(rights_of(owner), wanted)
    if wanted.has_wildcard and not principal.is_platform_admin:
        raise Forbidden("Only a platform admin makes tokens with a wildcard.")
    _require_within(principal, wanted)
    pat, text = create_pat(
        owner=owner,
        name=wanted.name,
        scopes=wanted.scopes,
        tenants=wanted.tenants,
        accounts=wanted.accounts,
        endpoints=[dict(endpoint) for endpoint in wanted.endpoints],
        expires_at=wanted.expires_at,
    )
    return {**pat_document(pat), "token": text}


def revoke_pat(principal: Principal, *, email: str, pat_id: int) -> None:
    """End a PAT and, within seconds, the access tokens minted from it.

    Raises:
        Forbidden: it is not the caller's own.
        NotFound: the user has no such PAT, or it is revoked already.
    """
    owner = _owner(principal, email)
    if not _live(owner).filter(pk=pat_id).update(revoked_at=now()):
        raise NotFound("There is no such personal access token.")


def pat_document(pat: PersonalAccessToken) -> dict[str, Any]:
    """Return a PAT without its text; ``prefix`` is what it begins with."""
    return {
        "id": pat.pk,
        "name": pat.name,
        "owner": pat.owner.email,
        "prefix": pat.prefix,
        "scopes": pat.scopes,
        "tenants": pat.tenants,
        "accounts": pat.accounts,
        "endpoints": pat.endpoints,
        "createdAt": format_timestamp(pat.created_at),
        "expiresAt": _optional(pat.expires_at),
        "lastUsedAt": _optional(pat.last_used_at),
    }


def require_grantable(owner: Rights, wanted: PatRequest) -> None:
    """Refuse what the owner's role and memberships do not bring.

    Raises:
        Forbidden: a scope, tenant or account beyond the owner's.
        ValidationFailed: an unknown tenant or account, or an expiry in the past.
    """
    if wanted.expires_at is not None and wanted.expires_at <= now():
        raise ValidationFailed.at("/expiresAt", "in-the-past", "Give a time in the future, or leave it out.")
    if wanted.has_wildcard and not owner.is_platform_admin:
        raise Forbidden("Only a platform admin owns tokens with a wildcard.")
    if not owner.is_platform_admin:
        _require_members(owner, wanted)
    elif WILDCARD not in wanted.tenants and (unknown := _unknown_tenants(wanted)):
        raise ValidationFailed.at("/tenants", "unknown-tenant", f"There is no tenant {unknown[0]}.")
    if owner.is_platform_admin and WILDCARD not in wanted.accounts:
        accounts = Account.objects.filter(pk__in=wanted.accounts)
        known = {str(key) for key in accounts.values_list("pk", flat=True)}
        if unknown := sorted(set(wanted.accounts) - known):
            raise ValidationFailed.at("/accounts", "unknown-account", f"There is no account {unknown[0]}.")


def _require_members(owner: Rights, wanted: PatRequest) -> None:
    if foreign := sorted(set(wanted.tenants) - {str(tenant) for tenant in owner.memberships}):
        raise Forbidden(f"The owner is no member of the tenant {foreign[0]}.")
    if foreign := sorted(set(wanted.accounts) - {str(account) for account in owner.owned_accounts}):
        raise Forbidden(f"The owner does not own the account {foreign[0]}.")
    allowed = grantable_scopes(owner)
    if wanted.tenants and not wanted.accounts:
        allowed &= NO_SCOPES.union(*(owner.from_membership(UUID(tenant)) for tenant in wanted.tenants))
    if excess := sorted(wanted.scopes - allowed):
        raise Forbidden(f"The owner's memberships do not bring the scope '{excess[0]}'.")


def _require_within(principal: Principal, wanted: PatRequest) -> None:
    """Keep a PAT from making one that may do more than itself."""
    claims = principal.claims
    if claims.is_sign_in:
        return
    if principal.rights.endpoints:
        raise Forbidden("A token that is bound to endpoints makes no other tokens.")
    if excess := sorted(wanted.scopes - claims.scopes):
        raise Forbidden(f"This token lacks the scope '{excess[0]}' itself.")
    if claims.has_wildcard:
        return
    foreign_tenants = set(wanted.tenants).difference(map(str, claims.tenants))
    if foreign_tenants or set(wanted.accounts).difference(map(str, claims.accounts)):
        raise Forbidden("This token does not reach one of the tenants or accounts itself.")


def _owner(principal: Principal, email: str) -> User:
    """Return the user whose PATs these are: the caller itself, anyone for a platform admin."""
    if email != principal.email and not principal.is_platform_admin:
        raise unreadable(principal)
    return readable_user(principal, email)


def _live(owner: User) -> Any:
    return PersonalAccessToken.objects.filter(owner=owner, revoked_at__isnull=True)


def _unknown_tenants(wanted: PatRequest) -> list[str]:
    live = Tenant.objects.filter(pk__in=wanted.tenants, deleted_at__isnull=True)
    return sorted(set(wanted.tenants) - {str(key) for key in live.values_list("pk", flat=True)})


def _optional(moment: dt.datetime | None) -> str | None:
    return format_timestamp(moment) if moment else None
