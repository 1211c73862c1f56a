"""``/users/{email}/tenants``. Contract: Users, roles, memberships."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.serializers.users import MembershipBody, membership_entries
from accounts.users import read_memberships, require_readable, write_memberships
from accounts.viewsets import AppViewSet
from tenantadmin.lib.http.hal import REASON
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request

#: drf-spectacular puts it into a list.
_EXAMPLE = OpenApiExample(
    "One tenant", value={"tenantId": "3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11", "role": "member"}
)


class MembershipViewSet(AppViewSet):
    """The memberships of a user in tenants."""

    tag = "Users"

    @route(
        "GET",
        "users/<email:email>/tenants",
        Level.USER,
        Scope.USERS_READ,
        notes="as getUser; shows only memberships that the caller may see",
        name="user-memberships",
    )
    @operation(
        summary="A user's memberships, as far as the caller may see them",
        responses={200: MembershipBody(many=True)},
    )
    def get_memberships(self, request: Request, email: str) -> Response:
        require_readable(self.principal, email)
        return Response(read_memberships(self.principal, email))

    @route(
        "PUT",
        "users/<email:email>/tenants",
        Level.USER,
        Scope.USERS_WRITE,
        notes="owners of the tenants named, for members of these; platform admins with a proof, who alone "
        "add members, but not themselves",
    )
    @operation(
        summary="Replace a user's memberships",
        description="An owner replaces the entries of its own tenants; entries of other tenants stay.",
        headers=[REASON],
        body=MembershipBody(many=True),
        responses={200: MembershipBody(many=True)},
        examples=[_EXAMPLE],
    )
    def replace_memberships(self, request: Request, email: str) -> Response:
        entries = membership_entries(self.body)
        return Response(write_memberships(self.principal, email=email, entries=entries, append=False))

    @route(
        "PATCH", "users/<email:email>/tenants", Level.USER, Scope.USERS_WRITE, notes="as replaceMemberships"
    )
    @operation(
        summary="Append to a user's memberships",
        description="A tenant that the user belongs to already keeps its entry.",
        headers=[REASON],
        body=MembershipBody(many=True),
        responses={200: MembershipBody(many=True)},
        examples=[_EXAMPLE],
    )
    def append_memberships(self, request: Request, email: str) -> Response:
        entries = membership_entries(self.body)
        return Response(write_memberships(self.principal, email=email, entries=entries, append=True))
