"""Checks of rights on accounts, of ownership, and of the domains of emails. Contract: Authentication.

`accounts.viewsets` checks the scope on the tenant in the path; these functions check the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings

from accounts.access.scopes import Scope
from accounts.models.billing import GrantResource
from accounts.models.users import PrimaryRole
from tenantadmin.lib.core.errors import Forbidden

if TYPE_CHECKING:
    from accounts.access.principal import Principal


def require_account_scope(principal: Principal, *, account_id: UUID, scope: Scope) -> None:
    """Refuse a caller who may not read (``config:read``) or write (``config:write``) an account.

    Raises:
        Forbidden: the caller is neither owner nor platform admin and has no grant, or its PAT does not name
            the account.
    """
    if scope in principal.on_accounts.scopes_on(account_id=account_id):
        return
    raise Forbidden(f"This needs '{scope}' on the account. Its owners have it.")


def owns_account(principal: Principal, account_id: UUID) -> bool:
    """Return True for an owner of the account who is not a guest, and for a platform admin.

    Grants do not count. It does not matter which accounts a PAT names.
    """
    return Scope.CONFIG_WRITE in principal.rights.own_on_accounts.scopes_on(account_id=account_id)


def owns_tenant(principal: Principal, tenant_id: UUID) -> bool:
    """Return True for an owner of the tenant who is not a guest, and for a platform admin.

    Grants do not count.
    """
    # Only an owner's membership gives this scope.
    return principal.is_platform_admin or Scope.USERS_WRITE in principal.rights.from_membership(tenant_id)


def owns_itself(principal: Principal, resource: str, resource_id: UUID) -> bool:
    """Return True for an owner of a tenant or an account who is not a guest.

    The role of a platform admin does not count, and a token with its wildcard owns nothing.
    """
    rights = principal.rights
    if resource == GrantResource.TENANT:
        is_owner = Scope.USERS_WRITE in rights.from_membership(resource_id)
    else:
        is_owner = resource_id in rights.owned_accounts and rights.role != PrimaryRole.GUEST
    return is_owner and not principal.is_platform_wide


def is_signed_in_owner(principal: Principal, tenant_id: UUID) -> bool:
    """Return True for a signed-in owner of the tenant who is not a guest. A platform admin must be an owner.

    For what the owners decide about the access of staff.
    """
    return principal.claims.is_sign_in and Scope.USERS_WRITE in principal.rights.from_membership(tenant_id)


def require_account_owner(principal: Principal, account_id: UUID) -> None:
    """Refuse a caller who neither owns the account nor is a platform admin.

    Raises:
        Forbidden: with who may.
    """
    if not owns_account(principal, account_id):
        raise Forbidden("Only an owner of the account or a platform admin may do this.")


def require_tenant_owner(principal: Principal, tenant_id: UUID) -> None:
    """Refuse a caller who is neither an owner of the tenant nor a platform admin.

    Raises:
        Forbidden: with who may.
    """
    if not owns_tenant(principal, tenant_id):
        raise Forbidden("Only an owner of the tenant or a platform admin may do this.")


def require_permitted(email: str) -> None:
    """Refuse a normalized address whose domain is not in `SIGNIN_EMAIL_DOMAINS`. An empty list permits all.

    Raises:
        Forbidden: the domain may not sign in.
    """
    permitted = {domain.strip().lower().removeprefix("@") for domain in settings.SIGNIN_EMAIL_DOMAINS}
    if permitted and email.rpartition("@")[2] not in permitted:
        raise Forbidden("Addresses of this domain may not sign in here.")
