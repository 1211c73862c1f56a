"""The one permission class: it finds the policy of the operation a view names, and asks the caller.

Contract: Authentication; the rows are in `accounts.access.policy`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from contextlib import suppress
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from rest_framework.permissions import BasePermission

from accounts.access.policy import POLICIES, On, Policy
from accounts.access.principal import Claims, Principal
from accounts.access.resources import granted_after_minting, require_account_scope
from accounts.access.rights import read_rights
from accounts.access.scopes import PAT_ONLY
from accounts.authentication import read_bearer
from accounts.models import Tenant
from tenantadmin.core.errors import ApiError, Forbidden, TosRequired, Unauthorized
from tenantadmin.http.views import ApiView

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase
    from rest_framework.authentication import BaseAuthentication
    from rest_framework.request import Request
    from rest_framework.views import APIView

    from accounts.access.scopes import Scope


class OperationPermission(BasePermission):
    """Allows what the operation's `Policy` allows, refuses everything else by name."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        require_operation(
            cast("ApiView", view),
            principal=request.auth,
            method=request.method or "",
            path=request.path,
            arguments=view.kwargs,
        )
        return True


class AppView(ApiView):
    """The base of every app's views: `OperationPermission` has let the caller through."""

    permission_classes = (OperationPermission,)

    def is_public(self, method: str) -> bool:
        name = self.operations.get("GET" if method == "HEAD" else method)
        # A method that there is not: public where all others are.
        names = self.operations.values() if name is None else (name,)
        return bool(names) and all(POLICIES[name].on is On.NOTHING for name in names)

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Return nothing to authenticate with where this operation is public: no header is looked at."""
        request: Request | None = self.request  # None while the contract is being written
        if request is not None and self.is_public(request.method or ""):
            return []
        return super().get_authenticators()

    @property
    def principal(self) -> Principal:
        """The authenticated caller."""
        return cast("Principal", self.request.auth)


class PolledView(AppView, ABC):
    """A view whose GET is asked all the time: it is answered ahead of DRF, whose own part takes longer.

    Who asks, and whether they may, is found as for every view. What is not answered here goes DRF's way:
    other methods, requests with a query, and every refusal.
    """

    @abstractmethod
    def answer_poll(
        self, request: HttpRequest | Request, *, principal: Principal, **arguments: Any
    ) -> HttpResponse:
        """Return the answer to ``principal``, who may ask; ``arguments`` are those of the path.

        Raises:
            ApiError: there is none.
        """

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "GET" and not request.META.get("QUERY_STRING"):
            with suppress(ApiError):
                principal = read_bearer(request)
                require_operation(
                    self, principal=principal, method="GET", path=request.path, arguments=kwargs
                )
                response = self.answer_poll(request, principal=cast("Principal", principal), **kwargs)
                response.headers["Allow"] = ", ".join(self.allowed_methods)
                return response
        return super().dispatch(request, *args, **kwargs)


def require_operation(
    view: ApiView, *, principal: object, method: str, path: str, arguments: dict[str, Any]
) -> None:
    """Refuse a caller who may not ask for an operation of ``view``.

    ``principal`` is None, or anything else that is no `Principal`, where nobody is known to ask;
    ``arguments`` are those of the path.

    Raises:
        Unauthorized, TosRequired, Forbidden: who asks, and what is missing.
    """
    policy = POLICIES[view.operation(method)]
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
