"""``/users/{email}/roles``. Contract: Users, roles, memberships."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from accounts.permissions import AppView
from accounts.roles import replace_roles
from accounts.serializers.people import RolesBody, RolesPatch
from accounts.users import read_roles
from tenantadmin.http.reading import read_body, read_query

if TYPE_CHECKING:
    from rest_framework.request import Request


class RolesView(AppView):
    operations: ClassVar = {"GET": "getRoles", "PUT": "replaceRoles", "PATCH": "mergeRoles"}

    @extend_schema(tags=["Users"], summary="A user's roles", responses={200: RolesBody})
    def get(self, request: Request, email: str) -> Response:
        read_query(None, request)
        return Response(read_roles(self.principal, email).as_json())

    @extend_schema(
        tags=["Users"],
        summary="Replace a user's roles",
        request=RolesBody,
        responses={200: RolesBody},
        examples=[OpenApiExample("A platform admin", value={"primary": "admin", "scopes": []})],
    )
    def put(self, request: Request, email: str) -> Response:
        read_query(None, request)
        body = read_body(RolesBody, request)
        return Response(replace_roles(email, primary=body["primary"], scopes=body["scopes"]).as_json())

    @extend_schema(
        tags=["Users"],
        summary="Merge into a user's roles, key by key",
        request=RolesPatch,
        responses={200: RolesBody},
        examples=[OpenApiExample("Only the primary role", value={"primary": "guest"}, request_only=True)],
    )
    def patch(self, request: Request, email: str) -> Response:
        read_query(None, request)
        body = read_body(RolesPatch, request)
        roles = replace_roles(email, primary=body.get("primary"), scopes=body.get("scopes"))
        return Response(roles.as_json())
