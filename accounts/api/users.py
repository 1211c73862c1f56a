"""``/users`` and ``/users/{email}``. Contract: Users, roles, memberships."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.emails import normalize_email
from accounts.memberships import MembershipEntry
from accounts.permissions import AppView, PolledView
from accounts.roles import make_roles
from accounts.serializers.people import UserBody, UserDocument
from accounts.users import UserChange, delete_user, list_users, read_user, write_user
from tenantadmin.core.errors import Detail, ValidationFailed
from tenantadmin.core.jsontext import dump_json
from tenantadmin.http import hal
from tenantadmin.http.fields import StrictCharField
from tenantadmin.http.reading import read_body, read_query
from tenantadmin.http.serializers import Link, StrictSerializer, Success

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.request import Request

    from accounts.access.principal import Principal


class UserItem(serializers.Serializer[Any]):
    email = serializers.EmailField()
    type = serializers.ChoiceField(choices=["user"])
    href = serializers.CharField()


class UserListLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()
    items = UserItem(many=True)


class UserList(serializers.Serializer[Any]):
    _links = UserListLinks()


class UserQuery(StrictSerializer):
    userid = StrictCharField(required=False, allow_blank=True, default="", trim_whitespace=False)


class UsersView(AppView):
    operations: ClassVar = {"GET": "listUsers"}

    @extend_schema(
        tags=["Users"],
        summary="The users that the caller may read, itself at least",
        parameters=[
            OpenApiParameter("userid", description="A part of the email, in any case; empty means all.")
        ],
        responses={200: UserList},
        examples=[
            OpenApiExample(
                "One user",
                value={
                    "_links": {
                        "self": {"href": "/users"},
                        "parent": {"href": "/"},
                        "items": [
                            {
                                "email": "ada@example.org",
                                "type": "user",
                                "href": "/users/ada@example.org",
                            }
                        ],
                    }
                },
            )
        ],
    )
    def get(self, request: Request) -> Response:
        userid = read_query(UserQuery, request)["userid"]
        items = list_users(self.principal, containing=userid)
        return Response({"_links": hal.links(self_href="/users", parent="/", items=items)})


class UserView(PolledView):
    operations: ClassVar = {"GET": "getUser", "PUT": "replaceUser", "DELETE": "deleteUser"}

    @extend_schema(tags=["Users"], summary="A user", responses={200: UserDocument})
    def get(self, request: Request, email: str) -> HttpResponse:
        read_query(None, request)
        return self.answer_poll(request, principal=self.principal, email=email)

    def answer_poll(
        self,
        request: HttpRequest | Request,
        *,
        principal: Principal,
        **arguments: Any,
    ) -> HttpResponse:
        body = dump_json(read_user(principal, arguments["email"]))
        return HttpResponse(body, content_type="application/json")

    @extend_schema(
        tags=["Users"],
        summary="Create or change a user",
        description="Absent members stay as they are; a new user gets the defaults.",
        request=UserBody,
        responses={200: UserDocument},
        examples=[
            OpenApiExample(
                "A new admin",
                value={"displayName": "Ada Lovelace", "roles": {"primary": "admin", "scopes": []}},
                request_only=True,
            )
        ],
    )
    def put(self, request: Request, email: str) -> Response:
        read_query(None, request)
        change = read_user_change(request, email=email)
        return Response(write_user(self.principal, email=email, change=change))

    @extend_schema(
        tags=["Users"],
        summary="Delete a user with memberships, grants and tokens",
        responses={200: Success},
    )
    def delete(self, request: Request, email: str) -> Response:
        read_query(None, request)
        delete_user(email)
        return Response({"success": True, "message": f"The user {email} is deleted."})


def read_user_change(request: Request, *, email: str) -> UserChange:
    """Return the change that the body of a PUT asks for.

    Raises:
        ValidationFailed: malformed, or another email than the one in the path.
    """
    body = read_body(UserBody, request)
    if "email" in body and normalize_email(body["email"]) != email:
        raise ValidationFailed(
            details=[Detail("/email", "read-only", "The email is the user's key and cannot be changed.")]
        )
    roles, tenants = body.get("roles"), body.get("tenants")
    return UserChange(
        display_name=body.get("displayName"),
        active=body.get("active"),
        roles=None if roles is None else make_roles(roles["primary"], roles["scopes"]),
        memberships=None if tenants is None else read_entries(tenants),
        created_at=body.get("createdAt"),
    )


def read_entries(items: list[dict[str, Any]]) -> tuple[MembershipEntry, ...]:
    """Return the membership entries of validated items."""
    return tuple(MembershipEntry(tenant_id=item["tenantId"], role=item["role"]) for item in items)
