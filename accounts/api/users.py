"""``/users``, ``/users/{email}``, its roles and memberships. Contract: Users, roles, memberships."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.readers.rule import Author
from accounts.roles import make_roles
from accounts.routes import route
from accounts.serializers.users import (
    MembershipBody,
    RolesBody,
    RolesPatch,
    UserBody,
    UserParameters,
    membership_entries,
)
from accounts.users import (
    UserChange,
    UserDocument,
    WrittenUserDocument,
    delete_user,
    list_users,
    read_memberships,
    read_roles,
    read_user,
    require_readable,
    write_memberships,
    write_roles,
    write_user,
)
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.core.structs import Email, JsonStruct, Success
from tenantadmin.lib.http.hal import REASON, ListLinks, hrefs, link
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


class UserItem(JsonStruct):
    email: Email
    type: Literal["user"]
    href: str


class UserListLinks(ListLinks):
    items: list[UserItem]


class UserList(JsonStruct):
    links: UserListLinks = msgspec.field(name="_links")


class UserViewSet(AppViewSet):
    """Users by their email."""

    tag = "Users"

    @route(
        "GET",
        "users",
        Level.SERVICE,
        Scope.USERS_READ,
        notes="lists the caller, and the users of tenants on which the caller has the scope",
        name="users",
    )
    @operation(
        summary="The users that the caller may read, itself at least",
        query=UserParameters,
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
    def list_users(self, request: Request) -> Response:
        emails = list_users(self.principal, containing=self.query.get("userid", ""))
        href = hrefs("user", email="email")
        items = [UserItem(email=email, type="user", href=href(email)) for email in emails]
        links = UserListLinks(self_=link(reverse("users")), parent=link(reverse("contract")), items=items)
        return Response(UserList(links=links))

    @route(
        "GET",
        "users/<email:email>",
        Level.USER,
        Scope.USERS_READ,
        notes="the user itself, and callers with the scope on a tenant of the user",
        name="user",
    )
    @operation(summary="A user", responses={200: UserDocument})
    def get_user(self, request: Request, email: str) -> Response:
        return Response(read_user(self.principal, email))

    @route(
        "PUT",
        "users/<email:email>",
        Level.USER,
        Scope.USERS_WRITE,
        notes="the user itself: displayName; owners: memberships of their tenants; platform admins: all; a "
        "proof, if roles or activity change, or memberships by the role of a platform admin",
    )
    @operation(
        summary="Create or change a user",
        description="Absent members stay as they are; a new user gets the defaults. "
        "A caller who may not read the user gets back what it sent.",
        headers=[REASON],
        body=UserBody,
        responses={200: WrittenUserDocument},
        examples=[
            OpenApiExample(
                "A new admin",
                value={"displayName": "Ada Lovelace", "roles": {"primary": "admin", "scopes": []}},
                request_only=True,
            )
        ],
    )
    def replace_user(self, request: Request, email: str) -> Response:
        change = _read_change(self.body, email=email)
        return Response(write_user(self.principal, email=email, change=change))

    @route("DELETE", "users/<email:email>", Level.PLATFORM, Scope.USERS_WRITE, needs_fresh_proof=True)
    @operation(
        summary="Delete a user with memberships, grants and tokens",
        description="The message names the accounts and tenants that are left without an owner.",
        headers=[REASON],
        responses={200: Success},
    )
    def delete_user(self, request: Request, email: str) -> Response:
        message = f"The user {email} is deleted."
        if ownerless := delete_user(email, author=Author.of(self.principal)):
            message += f" Without an owner now: {', '.join(ownerless)}."
        return Response(Success(success=True, message=message))


def _read_change(body: Mapping[str, Any], *, email: str) -> UserChange:
    """Return the change that a validated body asks for.

    Raises:
        ValidationFailed: the body names another email than the path.
    """
    if "email" in body and normalize_email(body["email"]) != email:
        raise ValidationFailed.at("/email", "read-only", "The email is the user's key and cannot be changed.")
    roles, tenants = body.get("roles"), body.get("tenants")
    return UserChange(
        display_name=body.get("displayName"),
        active=body.get("active"),
        roles=None if roles is None else make_roles(roles["primary"], roles["scopes"]),
        memberships=None if tenants is None else membership_entries(tenants),
        created_at=body.get("createdAt"),
    )


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
