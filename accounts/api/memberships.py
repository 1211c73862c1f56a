"""``/users/{email}/tenants``. Contract: Users, roles, memberships."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from accounts.api.users import read_entries
from accounts.memberships import append_memberships, replace_memberships
from accounts.permissions import AppView
from accounts.serializers.people import MembershipBody
from accounts.users import read_memberships, readable_user, require_readable
from tenantadmin.http.reading import read_items, read_query

if TYPE_CHECKING:
    from rest_framework.request import Request

_EXAMPLE = OpenApiExample(
    "One tenant", value=[{"tenantId": "3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11", "role": "member"}]
)


class MembershipsView(AppView):
    operations: ClassVar = {
        "GET": "getMemberships",
        "PUT": "replaceMemberships",
        "PATCH": "appendMemberships",
    }

    @extend_schema(
        tags=["Users"],
        summary="A user's memberships, those that the caller may see",
        responses={200: MembershipBody(many=True)},
    )
    def get(self, request: Request, email: str) -> Response:
        read_query(None, request)
        require_readable(self.principal, email)
        return Response(read_memberships(self.principal, email))

    @extend_schema(
        tags=["Users"],
        summary="Replace a user's memberships",
        description="An owner replaces the entries of its own tenants; those of other tenants stay.",
        request=MembershipBody(many=True),
        responses={200: MembershipBody(many=True)},
        examples=[_EXAMPLE],
    )
    def put(self, request: Request, email: str) -> Response:
        read_query(None, request)
        entries = read_entries(read_items(MembershipBody, request))
        user = readable_user(self.principal, email)
        replace_memberships(self.principal, user=user, entries=entries)
        return Response(read_memberships(self.principal, email))

    @extend_schema(
        tags=["Users"],
        summary="Append to a user's memberships",
        description="A tenant that the user belongs to already keeps its entry.",
        request=MembershipBody(many=True),
        responses={200: MembershipBody(many=True)},
        examples=[_EXAMPLE],
    )
    def patch(self, request: Request, email: str) -> Response:
        read_query(None, request)
        entries = read_entries(read_items(MembershipBody, request))
        append_memberships(self.principal, email=email, entries=entries)
        return Response(read_memberships(self.principal, email))
