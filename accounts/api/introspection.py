"""``POST /oauth/introspect``: what an access token says (RFC 7662)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.api.oauth import NO_STORE
from accounts.introspection import TokenDescription, describe_token
from accounts.routes import route
from accounts.serializers.oauth import Introspection
from accounts.viewsets import AppViewSet
from tenantadmin.lib.http.parsers import StrictFormParser, StrictJsonParser
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


class IntrospectionViewSet(AppViewSet):
    """Access tokens, for programs that cannot verify them offline."""

    tag = "Sign-in"

    @route(
        "POST",
        "oauth/introspect",
        Level.SERVICE,
        Scope.CONFIG_READ,
        notes="`{active: false}` unless the caller has the scope on all live tenants of the token, or on its "
        "accounts if it names no live tenant",
        name="introspection",
    )
    @operation(
        summary="What an access token says, and whether it is in force",
        description="For programs that cannot verify it offline (RFC 7662). `active` is false for a token "
        "that is not in force, and for one of tenants that the caller may not read. The body may also be a "
        "form (`application/x-www-form-urlencoded`).",
        body=Introspection,
        parsers=(StrictJsonParser, StrictFormParser),
        only_reads=True,
        responses={200: TokenDescription},
        examples=[OpenApiExample("An access token", value={"token": "eyJ…"}, request_only=True)],
    )
    def introspect_token(self, request: Request) -> Response:
        return Response(describe_token(self.principal, self.body["token"]), headers=NO_STORE)
