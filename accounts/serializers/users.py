"""Serializers of users, roles and memberships, for bodies and for the contract.

Contract: User, Roles, Tenant membership.
"""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rest_framework import serializers

from accounts.access.scopes import Scope
from accounts.memberships import MembershipEntry
from accounts.models.users import MembershipRole, PrimaryRole
from tenantadmin.lib.http.serializers import (
    IgnoredField,
    JsonBooleanField,
    OneOfField,
    StrictCharField,
    StrictSerializer,
    TimestampField,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCOPES = sorted(Scope)


class RolesBody(StrictSerializer):
    """A user's roles: the primary one decides access, ``scopes`` add to the sign-in token's claim."""

    primary = OneOfField(choices=PrimaryRole.choices)
    scopes = serializers.ListField(
        child=OneOfField(choices=SCOPES), required=False, default=list, max_length=100
    )


class RolesPatch(StrictSerializer):
    """The keys of a user's roles to change."""

    primary = OneOfField(choices=PrimaryRole.choices, required=False)
    scopes = serializers.ListField(child=OneOfField(choices=SCOPES), required=False, max_length=100)


class MembershipBody(StrictSerializer):
    """One user's role in one tenant."""

    tenantId = serializers.UUIDField()
    role = OneOfField(choices=MembershipRole.choices)


def membership_entries(items: Iterable[Mapping[str, Any]]) -> tuple[MembershipEntry, ...]:
    """Return the memberships of validated items of `MembershipBody`."""
    return tuple(MembershipEntry(tenant_id=item["tenantId"], role=item["role"]) for item in items)


class UserBody(StrictSerializer):
    """A user to create or change. Absent members do not change. Read-only members may be sent back."""

    email = StrictCharField(required=False, help_text="The address in the path, or absent.")
    type = OneOfField(choices=["user"], required=False)
    displayName = StrictCharField(required=False, allow_blank=True, max_length=200)
    roles = RolesBody(required=False)
    tenants = MembershipBody(many=True, required=False)
    active = JsonBooleanField(required=False)
    createdAt = TimestampField(required=False, help_text="The stored one, or absent.")
    identity = IgnoredField(required=False, allow_null=True, help_text="Read-only; ignored.")
    tos = IgnoredField(required=False, allow_null=True, help_text="Read-only; ignored.")
    modifiedAt = IgnoredField(required=False, allow_null=True, help_text="Read-only; ignored.")


_PRIVATE: Final = "Null for all but the user itself and platform admins."


class IdentityData(serializers.Serializer[Any]):
    """The identity at the last sign-in."""

    provider = serializers.CharField(allow_null=True)
    subject = serializers.CharField(allow_null=True)
    emailVerified = serializers.BooleanField()
    lastLoginAt = serializers.DateTimeField(allow_null=True)


class UserDocument(serializers.Serializer[Any]):
    """A user. ``tenants`` lists the memberships that the caller may see."""

    email = serializers.EmailField()
    type = OneOfField(choices=["user"])
    displayName = serializers.CharField(allow_blank=True)
    roles = RolesBody()
    tenants = MembershipBody(many=True)
    identity = IdentityData(allow_null=True, help_text=_PRIVATE)
    tos = serializers.CharField(allow_null=True, help_text=f"MD5 of the terms last acknowledged. {_PRIVATE}")
    active = serializers.BooleanField()
    createdAt = serializers.DateTimeField()
    modifiedAt = serializers.DateTimeField()


class WrittenUserDocument(UserDocument):
    """A user as it was written. A caller who may not read it gets back what it sent."""

    displayName = serializers.CharField(allow_blank=True, required=False)
    roles = RolesBody(required=False)
    active = serializers.BooleanField(required=False)
    createdAt = serializers.DateTimeField(required=False)
    modifiedAt = serializers.DateTimeField(required=False)


class UserParameters(StrictSerializer):
    userid = StrictCharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="A part of the email, in any case; empty means all.",
    )
