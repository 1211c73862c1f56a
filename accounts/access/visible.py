"""The rows that a caller may list, as filters that the database applies. Contract: Authentication.

One tenant is asked of `Principal.scopes_on_tenant`; the filters here give the same answer for all at once,
without reading any tenant first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from accounts.access.principal import WILDCARD
from accounts.access.scopes import MEMBERS_ONLY, MEMBERSHIP_SCOPES, READ_SCOPES, Scope
from accounts.models.users import PrimaryRole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from accounts.access.principal import Principal

NOTHING = Q(pk__in=())


def listed_tenants(principal: Principal, scope: Scope) -> Q:
    """Return the filter of tenants that belong in the caller's lists.

    Signed in, that is the token's own tenants and those of grants, for a platform admin too; the whole only
    for a wildcard PAT.
    """
    return _token_reach(principal, tenant="pk", account="account_id") & _rights(
        principal, scope, tenant="pk", account="account_id"
    )


def readable_by_tenant(principal: Principal, scope: Scope, *, tenant: str, account: str) -> Q:
    """Return the filter of rows about tenants on which the caller holds ``scope``.

    ``tenant`` and ``account`` are the fields that hold the two ids.
    """
    if principal.is_platform_admin and principal.claims.is_sign_in:
        return Q() if scope in principal.claims.scopes - MEMBERS_ONLY else NOTHING
    return _token_reach(principal, tenant=tenant, account=account) & _rights(
        principal, scope, tenant=tenant, account=account
    )


def readable_accounts(principal: Principal, scope: Scope, *, account: str) -> Q:
    """Return the filter of rows about accounts on which the caller holds ``scope``."""
    rights, claims = principal.rights, principal.claims
    if not claims.is_sign_in and scope not in claims.scopes:
        return NOTHING
    is_wildcard = WILDCARD in claims.accounts or WILDCARD in claims.tenants
    granted = {held for held, scopes in rights.account_grants.items() if scope in scopes}
    held = rights.owned_accounts | granted
    if claims.is_sign_in:
        if principal.is_platform_admin:
            return Q()
        named = {account_id for account_id in rights.owned_accounts if str(account_id) in claims.accounts}
        return _in(account, named | granted)
    if is_wildcard:
        return Q() if rights.is_platform_admin else _in(account, held)
    named_ids = {account_id for account_id in claims.accounts if account_id != WILDCARD}
    if rights.is_platform_admin:
        return Q(**{f"{account}__in": named_ids})
    return _in(account, {account_id for account_id in held if str(account_id) in named_ids})


def _token_reach(principal: Principal, *, tenant: str, account: str) -> Q:
    rights, claims = principal.rights, principal.claims
    named = Q(**{f"{tenant}__in": claims.tenants - {WILDCARD}})
    if claims.is_sign_in:
        return named | _in(tenant, rights.tenant_grants) | _in(account, rights.account_grants)
    if principal.is_platform_wide:
        return Q()
    return named | Q(**{f"{account}__in": claims.accounts - {WILDCARD}})


def _rights(principal: Principal, scope: Scope, *, tenant: str, account: str) -> Q:
    rights, claims = principal.rights, principal.claims
    if scope not in claims.scopes:
        return NOTHING
    if rights.is_platform_admin and scope not in MEMBERS_ONLY:
        return Q()
    by_role = {
        role: scopes & READ_SCOPES if rights.role == PrimaryRole.GUEST else scopes
        for role, scopes in MEMBERSHIP_SCOPES.items()
    }
    memberships = {held for held, role in rights.memberships.items() if scope in by_role[role]}
    tenant_grants = {held for held, scopes in rights.tenant_grants.items() if scope in scopes}
    account_grants = {held for held, scopes in rights.account_grants.items() if scope in scopes}
    return _in(tenant, memberships | tenant_grants) | _in(account, account_grants)


def _in(field: str, ids: Iterable[UUID]) -> Q:
    return Q(**{f"{field}__in": list(ids)})
