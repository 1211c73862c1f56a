"""``/users/{email}/roles``. Contract: Users, roles, memberships."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.serializers.users import RolesBody, RolesPatch
from accounts.users import read_roles, write_roles
from accounts.viewsets import AppViewSet
from tenantadmin.lib.http.hal import REASON
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


class RolesViewSet(AppViewSet):
    """The roles of a user."""

    tag = "Users"

    @route(
        "GET",
        "users/<email:email>/roles",
        Level.USER,
        Scope.USERS_READ,
        notes="as getUser",
        name="user-roles",
    )
    @operation(summary="A user's roles", responses={200: RolesBody})
    def get_roles(self, request: Request, email: str) -> Response:
        return Response(read_roles(self.principal, email))

    @route("PUT", "users/<email:email>/roles", Level.PLATFORM, Scope.USERS_WRITE, needs_fresh_proof=True)
    @operation(
        summary="Replace a user's roles",
        headers=[REASON],
        body=RolesBody,
        responses={200: RolesBody},
        examples=[OpenApiExample("A platform admin", value={"primary": "admin", "scopes": []})],
    )
    def replace_roles(self, request: Request, email: str) -> Response:
        return Response(write_roles(self.principal, email=email, sent=self.body))

    @route("PATCH", "users/<email:email>/roles", Level.PLATFORM, Scope.USERS_WRITE, needs_fresh_proof=True)
    @operation(
        summary="Merge into a user's roles, key by key",
        description="A caller who may not read the user gets back what it sent.",
        headers=[REASON],
        body=RolesPatch,
        responses={200: RolesPatch},
        examples=[OpenApiExample("Only the primary role", value={"primary": "guest"}, request_only=True)],
    )
    def merge_roles(self, request: Request, email: str) -> Response:
        return Response(write_roles(self.principal, email=email, sent=self.body))
