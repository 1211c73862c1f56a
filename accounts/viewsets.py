"""The base of every app's viewsets, and its one permission class.

The permission finds the policy of the operation and asks the caller. Contract: Authentication; the policies
are in `accounts.access.policy`.
"""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from rest_framework.permissions import BasePermission

from accounts.access.policy import POLICIES, On, Policy
from accounts.access.principal import Claims, Principal
from accounts.access.resources import granted_after_minting, require_account_scope
from accounts.access.rights import read_rights
from accounts.access.scopes import PAT_ONLY
from accounts.models import Tenant
from tenantadmin.core.errors import Forbidden, MethodNotAllowed, TosRequired, Unauthorized
from tenantadmin.http.viewsets import ApiViewSet

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.authentication import BaseAuthentication
    from rest_framework.request import Request
    from rest_framework.views import APIView

    from accounts.access.scopes import Scope


class OperationPermission(BasePermission):
    """Allows what the operation's `Policy` allows, refuses everything else by name."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        viewset = cast("AppViewSet", view)
        if viewset.current_operation is None:
            raise MethodNotAllowed
        require_operation(
            POLICIES[viewset.operation_id(viewset.action)],
            principal=request.auth,
            method=request.method or "",
            path=request.path,
            arguments=viewset.kwargs,
        )
        return True


class AppViewSet(ApiViewSet):
    """A viewset behind `OperationPermission`, which asks the policy of the operation."""

    permission_classes = (OperationPermission,)

    @classmethod
    def is_public(cls, action: str) -> bool:
        """Tell whether anyone may call an action, without credentials."""
        return POLICIES[cls.operation_id(action)].on is On.NOTHING

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Return none for a public operation: no header is looked at."""
        request: Request | None = self.request  # None while the contract is being written
        if request is not None and all(map(self.is_public, self._possible_actions(request))):
            return []
        return super().get_authenticators()

    def _possible_actions(self, request: Request) -> list[str]:
        """Return the action asked for; all actions of the address where it has no such method."""
        action = self.action_map.get((request.method or "").lower())
        return list(self.action_map.values()) if action is None else [action]

    @property
    def principal(self) -> Principal:
        """The authenticated caller."""
        return cast("Principal", self.request.auth)


def require_operation(
    policy: Policy, *, principal: object, method: str, path: str, arguments: dict[str, Any]
) -> None:
    """Refuse a caller whom the ``policy`` of an operation does not allow.

    ``principal`` is not a `Principal` where the request has no token; ``arguments`` are those of the path.

    Raises:
        Unauthorized, TosRequired, Forbidden: who asks, and what is missing.
    """
    if policy.on is On.NOTHING:
        return
    if not isinstance(principal, Principal):
        raise Unauthorized
    if principal.claims.tos_required and not policy.bridge:
        raise TosRequired
    require_endpoint(principal, method=method, path=path)
    check_policy(policy, principal=principal, arguments=arguments)


def check_policy(policy: Policy, *, principal: Principal, arguments: dict[str, Any]) -> None:
    """Refuse a caller whom ``policy`` does not allow; ``arguments`` are those of the path.

    Raises:
        Forbidden: always with the missing scope named where there is one.
    """
    if policy.on is On.TENANT:
        require_tenant_scope(principal, tenant_id=arguments["tenant"], scope=cast("Scope", policy.scope))
        return
    if policy.on is On.ACCOUNT:
        require_account_scope(principal, account_id=arguments["account"], scope=cast("Scope", policy.scope))
        return
    if policy.on is On.PLATFORM and not principal.is_platform_admin:
        raise Forbidden("Only a platform admin may do this.")
    if policy.on is On.PLATFORM_PAT and not principal.is_platform_wide:
        raise Forbidden("This needs a personal access token with wildcard tenants or accounts.")
    if policy.on is On.SELF and arguments["email"] != principal.email:
        raise Forbidden("Only the user concerned may do this.")
    if policy.scope is not None and not principal.claims.is_sign_in:
        # Signing in brings what the role allows, and the function narrows to that; a PAT must say so.
        require_token_scope(principal, policy.scope)


def require_token_scope(principal: Principal, scope: Scope) -> None:
    """Refuse a token whose ``scope`` claim lacks ``scope``.

    Raises:
        Forbidden: with the scope named.
    """
    if scope not in principal.claims.scopes:
        raise Forbidden(f"The token lacks the scope '{scope}'.")


def require_tenant_scope(principal: Principal, *, tenant_id: UUID, scope: Scope) -> None:
    """Refuse a caller who does not hold ``scope`` on a tenant.

    Raises:
        Forbidden: the scope is missing, or the tenant is unknown and the caller may not know. Where a token
            minted now would hold the scope, it says so; to others an unknown tenant reads like any.
    """
    account_id = _account_of(principal, tenant_id)
    if scope not in principal.on_tenants.scopes_on(tenant_id=tenant_id, account_id=account_id):
        if principal.claims.is_sign_in and scope not in PAT_ONLY:
            _tell_later_grant(principal.claims, tenant_id=tenant_id, scope=scope)
        raise Forbidden(f"This needs '{scope}' on the tenant.")


def _tell_later_grant(claims: Claims, *, tenant_id: UUID, scope: Scope) -> None:
    """Refuse in other words whom the database allows ``scope`` by now, however lately."""
    latest = Principal(claims=claims, rights=read_rights(claims))
    account_id = _account_of(latest, tenant_id)
    if scope in latest.rights.on_tenants.scopes_on(tenant_id=tenant_id, account_id=account_id):
        raise granted_after_minting(scope, "tenant")


def _account_of(principal: Principal, tenant_id: UUID) -> UUID | None:
    """Return the tenant's account if it may decide; ask the database only then."""
    if not principal.on_tenants.asks_for_account:
        return None
    return Tenant.objects.filter(pk=tenant_id).values_list("account_id", flat=True).first()


def require_endpoint(principal: Principal, *, method: str, path: str) -> None:
    """Refuse a request that the ``endpoints`` of the PAT behind the token do not cover.

    Raises:
        Forbidden: no entry matches method and path.
    """
    endpoints = principal.rights.endpoints
    if not endpoints:
        return
    for endpoint in endpoints:
        methods = [name.upper() for name in endpoint.get("methods", [])]
        if (not methods or method in methods) and _glob(endpoint.get("path", "*")).match(path):
            return
    raise Forbidden("The personal access token behind this token does not cover this endpoint.")


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
