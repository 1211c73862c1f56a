"""The base class of all viewsets, and the one permission class.

The permission class checks the caller against the `Route` of the operation.
Contract: Authentication.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from fnmatch import translate
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import unquote
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from django.utils.encoding import iri_to_uri
from rest_framework.permissions import BasePermission

from accounts.access.assurance import (
    REASON_HEADER,
    SecondFactorRequired,
    require_fresh_proof,
    require_reason,
)
from accounts.access.principal import Principal
from accounts.access.resources import require_account_scope
from accounts.access.rights import latest_rights
from accounts.access.scopes import MEMBERS_ONLY, PAT_ONLY, Level
from accounts.budgets import Cost, MeteredPieces, on_budget, require_budget, use_budget
from accounts.models import Tenant
from tenantadmin.lib.core.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    MethodNotAllowed,
    RateLimited,
    TosRequired,
    Unauthorized,
)
from tenantadmin.lib.core.request_context import (
    MAX_REASON,
    acting_for,
    current_network,
    describe_request,
    give_reason,
)
from tenantadmin.lib.core.serving import CALLER_KEY, Work, disconnection_of, unread_bytes_of, working
from tenantadmin.lib.http.budgets import REQUEST
from tenantadmin.lib.http.hal import HalLinks, link
from tenantadmin.lib.http.viewsets import ApiViewSet

if TYPE_CHECKING:
    from rest_framework.authentication import BaseAuthentication
    from rest_framework.request import Request
    from rest_framework.response import Response
    from rest_framework.views import APIView

    from accounts.access.scopes import Scope
    from accounts.routes import Route
    from tenantadmin.lib.http.hal import HalItem

#: Means the caller in every ``/users/{email}`` path.
ME: Final = "me"


class OperationPermission(BasePermission):
    """Allow a request if the `Route` of its operation does; else raise the error that says why not."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        viewset = cast("AppViewSet", view)
        if viewset.current_operation is None:
            raise MethodNotAllowed
        require = partial(
            require_operation,
            viewset.route_of(viewset.action),
            method=request.method or "",
            path=viewset.path,
            arguments=viewset.kwargs,
        )
        try:
            require(principal=request.auth)
        except Forbidden:
            if not isinstance(request.auth, Principal):
                raise
            # The rights may be seconds old. Where the user has just created the tenant, that must not refuse.
            request.auth = latest_rights(request.auth)
            require(principal=request.auth)
        principal = request.auth
        if isinstance(principal, Principal) and principal.claims.is_staff and not viewset.only_reads:
            declared = viewset.route_of(viewset.action)
            if declared.level in {Level.TENANT, Level.ACCOUNT} and not declared.needs_no_reason:
                require_reason()
        return True


class AppViewSet(ApiViewSet):
    """A viewset whose actions `OperationPermission` protects."""

    permission_classes = (OperationPermission,)

    #: What all paths of the viewset begin with.
    prefix: ClassVar[str] = ""

    #: Ends when the whole answer is made.
    answering: ExitStack
    _cost: Cost | None = None
    _started: float

    def check_throttles(self, request: Request) -> None:
        """Refuse a caller who has used up the operation's budget, else count what the request costs.

        Callers without a token are told apart by their address.

        Raises:
            RateLimited: with the time to wait.
        """
        super().check_throttles(request)
        if self.current_operation is not None:
            network = current_network()
            caller = request.auth.email if isinstance(request.auth, Principal) else network
            request.META[CALLER_KEY] = caller
            unread = unread_bytes_of(request.META, caller)
            budget = self.current_operation.budget
            self._cost = self.answering.enter_context(
                on_budget(budget, caller=caller, network=network, unread=unread)
            )

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self._started = REQUEST.clock()
        work = Work(seconds=settings.REQUEST_SECONDS, is_abandoned=disconnection_of(request.META).happened)
        # Events keep the reason of this request, if it gives one.
        with ExitStack() as self.answering, working(work), acting_for(""):
            response: Any = super().dispatch(request, *args, **kwargs)
            if self._cost is not None and response.streaming:
                pieces = MeteredPieces(response.streaming_content, self._cost, ended=self.answering.pop_all())
                response.streaming_content = pieces
            return response

    def handle_exception(self, exc: Exception) -> Response:
        """Count a request that was refused before its budget was known, against the client's network.

        Tell a platform admin whom a second factor would let through to prove it.
        """
        if self._cost is None and not isinstance(exc, RateLimited):
            network = current_network()
            try:
                require_budget(REQUEST, caller=network)
            except RateLimited as limited:
                return super().handle_exception(limited)
            use_budget(REQUEST, caller=network, seconds=REQUEST.clock() - self._started)
        if type(exc) is Forbidden and self._is_held_back:
            exc = SecondFactorRequired(f"{exc.text} {SecondFactorRequired.message}")
        if isinstance(exc, ApiError):
            exc.settle()
        return super().handle_exception(exc)

    @property
    def _is_held_back(self) -> bool:
        """True if the role of a platform admin, which the session has not proven, may allow the operation."""
        principal = self.request.auth
        declared = self.route_of(self.action)
        is_for_members = MEMBERS_ONLY & {declared.scope, declared.also}
        return isinstance(principal, Principal) and principal.rights.is_held_back and not is_for_members

    @classmethod
    def routes(cls) -> dict[str, Route]:
        """Return the routes of the actions, with whole paths, in the order of their definition."""
        actions = (name for base in reversed(cls.__mro__) for name in vars(base))
        return {
            name: replace(cls.route_of(name), path=cls.prefix + cls.route_of(name).path)
            for name in actions
            if hasattr(getattr(cls, name, None), "route")
        }

    @classmethod
    def route_of(cls, action: str) -> Route:
        """Return what `route` declares for an action."""
        declared: Route = getattr(cls, action).route
        return declared

    @classmethod
    def is_public(cls, action: str) -> bool:
        """Return True if an action needs no credentials."""
        return cls.route_of(action).level is Level.PUBLIC

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Return no authenticators for a public operation: it ignores ``Authorization``."""
        request: Request | None = self.request  # None while drf-spectacular writes the contract
        if request is not None and all(map(self.is_public, self._possible_actions(request))):
            return []
        return super().get_authenticators()

    def _possible_actions(self, request: Request) -> list[str]:
        """Return the requested action, or all actions of the path if it does not have this method."""
        action = self.action_map.get((request.method or "").lower())
        return list(self.action_map.values()) if action is None else [action]

    @property
    def principal(self) -> Principal:
        """The authenticated caller."""
        return cast("Principal", self.request.auth)

    @property
    def path(self) -> str:
        """The path of the request, with the address of the caller in place of `me`.

        The ``endpoints`` of a PAT are compared with it, so two spellings of one path cannot differ.
        """
        match = self.request.resolver_match
        if match is None or match.kwargs.get("email") != ME:
            return self.request.path
        return unquote(reverse(match.view_name, kwargs=self.kwargs))

    def links(self, parent: str, items: Iterable[HalItem] = ()) -> HalLinks:
        """Return the ``_links`` of the list at this address.

        ``parent`` is the name of a route with the same parameters, or ``contract``.
        """
        match = self.request.resolver_match
        own = reverse(match.view_name if match else "", kwargs=self.kwargs)
        query = self.request.META.get("QUERY_STRING", "")
        return HalLinks(
            self_=link(f"{own}?{iri_to_uri(query)}" if query else own),
            parent=link(reverse(parent, kwargs=None if parent == "contract" else self.kwargs)),
            items=list(items),
        )

    def perform_authentication(self, request: Request) -> None:
        """Authenticate the caller, and put its address in place of `me` in the path."""
        super().perform_authentication(request)
        if isinstance(request.auth, Principal):
            describe_request(user=request.auth.email, tenant=self.kwargs.get("tenant"))
            give_reason(_read_reason(request))
        if self.kwargs.get("email") == ME and isinstance(request.auth, Principal):
            self.kwargs["email"] = request.auth.email


def _read_reason(request: Request) -> str:
    """Return why the caller does this, from the header of the request.

    Raises:
        BadRequest: it is too long, or not percent-encoded UTF-8.
    """
    sent = request.headers.get(REASON_HEADER, "")
    try:
        reason = unquote(sent.encode("ascii").decode(), errors="strict").strip()
    except UnicodeError as error:
        raise BadRequest(f"The header {REASON_HEADER} is not percent-encoded UTF-8.") from error
    if len(reason) > MAX_REASON or not reason.isprintable():
        raise BadRequest(f"The header {REASON_HEADER} takes at most {MAX_REASON} printable characters.")
    return reason


def require_operation(
    route: Route, *, principal: object, method: str, path: str, arguments: dict[str, Any]
) -> None:
    """Refuse a caller that the ``route`` of an operation does not allow.

    ``principal`` is not a `Principal` if the request has no token. ``arguments`` are the path parameters.

    Raises:
        Unauthorized: the request has no token.
        TosRequired: the user must acknowledge the terms of service first.
        Forbidden: the caller or its token lacks a right.
    """
    if route.level is Level.PUBLIC:
        return
    if not isinstance(principal, Principal):
        raise Unauthorized
    if principal.claims.tos_required and not route.before_terms:
        raise TosRequired
    require_endpoint(principal, method=method, path=path)
    check_route(route, principal=principal, arguments=arguments)


def check_route(route: Route, *, principal: Principal, arguments: dict[str, Any]) -> None:
    """Refuse a caller that ``route`` does not allow. ``arguments`` are the path parameters.

    Raises:
        Forbidden: the message names the missing scope, if it is a scope that is missing.
    """
    if route.level is Level.TENANT:
        for scope in filter(None, (route.scope, route.also)):
            require_tenant_scope(principal, tenant_id=arguments["tenant"], scope=scope)
            if route.members_only:
                require_member(principal, tenant_id=arguments["tenant"], scope=scope)
        return
    if route.level is Level.ACCOUNT:
        require_account_scope(principal, account_id=arguments["account"], scope=cast("Scope", route.scope))
        return
    if route.level is Level.PLATFORM and not principal.is_platform_admin:
        raise Forbidden("Only a platform admin may do this.")
    if route.level is Level.PLATFORM_PAT and not principal.is_platform_wide:
        raise Forbidden("This needs a personal access token with wildcard tenants or accounts.")
    if route.level is Level.SELF and arguments["email"] != principal.email:
        raise Forbidden("Only the user in the path may do this.")
    if route.needs_fresh_proof:
        require_fresh_proof(principal)
    if route.scope is not None and (route.scope in PAT_ONLY or not principal.claims.is_sign_in):
        # For a sign-in token the service function itself checks the rights; a PAT must have the scope.
        require_token_scope(principal, route.scope)


def require_token_scope(principal: Principal, scope: Scope) -> None:
    """Refuse a token whose ``scope`` claim lacks ``scope``.

    Raises:
        Forbidden: the message names the scope.
    """
    if scope not in principal.claims.scopes:
        raise Forbidden(f"The token lacks the scope '{scope}'.{_how_to_get(scope)}")


def require_tenant_scope(principal: Principal, *, tenant_id: UUID, scope: Scope) -> None:
    """Refuse a caller who does not have ``scope`` on a tenant.

    Raises:
        Forbidden: the scope is missing. The message is the same for an unknown tenant, so that it does not
            tell which tenants exist.
    """
    account_id = _account_of(principal, tenant_id)
    if scope not in principal.on_tenants.scopes_on(tenant_id=tenant_id, account_id=account_id):
        raise Forbidden(f"This needs '{scope}' on the tenant.{_how_to_get(scope)}")


def require_member(principal: Principal, *, tenant_id: UUID, scope: Scope) -> None:
    """Refuse a caller whose membership does not give ``scope``, or whose PAT does not name the tenant.

    Raises:
        Forbidden: the role of a platform admin, a grant or a wildcard is not enough.
    """
    is_named = principal.claims.is_sign_in or tenant_id in principal.claims.tenants
    if not is_named or scope not in principal.rights.from_membership(tenant_id):
        raise Forbidden("This is for members of the tenant, and for tokens that name it.")


def _how_to_get(scope: Scope) -> str:
    """Return a sentence for who tries with a token from signing in. Those never have some scopes."""
    if scope not in PAT_ONLY:
        return ""
    return (
        " Only personal access tokens have this scope: POST /users/me/tokens makes one, and POST "
        "/oauth/token exchanges it for an access token."
    )


def _account_of(principal: Principal, tenant_id: UUID) -> UUID | None:
    """Return the tenant's account, or None (without a query) if no scopes on accounts exist."""
    if not principal.on_tenants.needs_account:
        return None
    return Tenant.objects.filter(pk=tenant_id).values_list("account_id", flat=True).first()


def require_endpoint(principal: Principal, *, method: str, path: str) -> None:
    """Refuse a request that the ``endpoints`` of the PAT behind the token do not cover. GET covers HEAD.

    Raises:
        Forbidden: no entry matches method and path.
    """
    covering = {method, "GET"} if method == "HEAD" else {method}
    endpoints = principal.rights.endpoints
    if not endpoints:
        return
    for endpoint in endpoints:
        methods = {name.upper() for name in endpoint.get("methods", [])}
        if (not methods or methods & covering) and _glob(endpoint.get("path", "*")).match(path):
            return
    raise Forbidden("The personal access token behind this token does not cover this endpoint.")


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
