"""Rights on accounts, and those on tenants that only owners have. Contract: Authentication.

`accounts.permissions` asks for a scope on the tenant in the path; these functions ask for the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from accounts.access.principal import WILDCARD
from accounts.access.rights import read_rights
from accounts.access.scopes import MEMBERS_ONLY, PLATFORM_ADMIN_SCOPES, Scope
from accounts.models.users import MembershipRole, PrimaryRole
from tenantadmin.core.errors import Forbidden

if TYPE_CHECKING:
    from uuid import UUID

    from accounts.access.principal import Principal, Rights

#: What owning an account brings on the account itself.
ACCOUNT_OWNER_SCOPES: Final = frozenset({Scope.CONFIG_READ, Scope.CONFIG_WRITE})


def scopes_on_account(principal: Principal, account_id: UUID) -> frozenset[Scope]:
    """Return what the caller may do on an account: what its token reaches and the database allows."""
    if not token_names_account(principal, account_id):
        return frozenset()
    allowed = _rights_on_account(principal.rights, account_id)
    return allowed if principal.claims.is_sign_in else allowed & principal.claims.scopes


def _rights_on_account(rights: Rights, account_id: UUID) -> frozenset[Scope]:
    allowed = rights.account_grants.get(account_id, frozenset()) - MEMBERS_ONLY
    if rights.is_platform_admin:
        allowed |= PLATFORM_ADMIN_SCOPES
    if account_id in rights.owned_accounts:
        allowed |= (
            ACCOUNT_OWNER_SCOPES - {Scope.CONFIG_WRITE}
            if rights.role == PrimaryRole.GUEST
            else ACCOUNT_OWNER_SCOPES
        )
    return allowed


def token_names_account(principal: Principal, account_id: UUID) -> bool:
    """Tell whether the token reaches an account, by its id or by a wildcard."""
    claims = principal.claims
    if str(account_id) in claims.accounts:
        return True
    if claims.is_sign_in:
        return principal.is_platform_admin or account_id in principal.rights.account_grants
    return WILDCARD in claims.accounts or WILDCARD in claims.tenants


def require_account_scope(principal: Principal, *, account_id: UUID, scope: Scope) -> None:
    """Refuse a caller who may not read (``config:read``) or write (``config:write``) an account.

    Raises:
        Forbidden: neither owner nor platform admin, no grant, or the token does not reach the account.
    """
    if scope not in scopes_on_account(principal, account_id):
        if principal.claims.is_sign_in and scope in _rights_on_account(
            read_rights(principal.claims), account_id
        ):
            raise granted_after_minting(scope, "account")
        raise Forbidden(f"This needs '{scope}' on the account: its owners hold it.")


def granted_after_minting(scope: Scope, where: str) -> Forbidden:
    """Return the refusal of one who holds ``scope`` by now, but whose sign-in token does not say so yet."""
    return Forbidden(
        f"'{scope}' on the {where} was granted after this token was minted."
        " Refresh the token: POST /oauth/token."
    )


def owns_account(principal: Principal, account_id: UUID) -> bool:
    """Tell whether the caller owns an account, guests apart, or is a platform admin. Grants do not count.

    Whether the token reaches the account is another question.
    """
    rights = principal.rights
    owns = account_id in rights.owned_accounts and rights.role != PrimaryRole.GUEST
    return owns or rights.is_platform_admin


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
    if principal.is_platform_admin:
        return
    rights = principal.rights
    is_owner = rights.memberships.get(tenant_id) == MembershipRole.OWNER
    if not is_owner or rights.role == PrimaryRole.GUEST:
        raise Forbidden("Only an owner of the tenant or a platform admin may do this.")
