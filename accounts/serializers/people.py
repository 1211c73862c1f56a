"""Bodies that the endpoints of users, roles and memberships share. Contract: Resources and their fields."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.access.scopes import Scope
from accounts.models.users import MembershipRole, PrimaryRole
from tenantadmin.http.fields import (
    IgnoredField,
    JsonBooleanField,
    OneOfField,
    StrictCharField,
    TimestampField,
)
from tenantadmin.http.serializers import StrictSerializer

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

    tenantId = serializers.UUIDField()  # noqa: N815
    role = OneOfField(choices=MembershipRole.choices)


class UserBody(StrictSerializer):
    """A User as it is sent: an absent member stays as it is, read-only ones may be sent back."""

    email = StrictCharField(required=False, help_text="The address in the path, or absent.")
    type = OneOfField(choices=["user"], required=False)
    displayName = StrictCharField(required=False, allow_blank=True, max_length=200)  # noqa: N815
    roles = RolesBody(required=False)
    tenants = MembershipBody(many=True, required=False)
    active = JsonBooleanField(required=False)
    createdAt = TimestampField(required=False, help_text="The stored one, or absent.")  # noqa: N815
    identity = IgnoredField(required=False, allow_null=True, help_text="Read-only; ignored.")
    tos = IgnoredField(required=False, allow_null=True, help_text="Read-only; ignored.")
    modifiedAt = IgnoredField(required=False, allow_null=True, help_text="Read-only; ignored.")  # noqa: N815


class IdentityData(serializers.Serializer[Any]):
    """What the identity provider said at the last sign-in."""

    provider = serializers.CharField(allow_null=True)
    subject = serializers.CharField(allow_null=True)
    emailVerified = serializers.BooleanField()  # noqa: N815
    lastLoginAt = serializers.DateTimeField(allow_null=True)  # noqa: N815


class UserDocument(serializers.Serializer[Any]):
    """A User. ``tenants`` holds what the caller may see."""

    email = serializers.EmailField()
    type = OneOfField(choices=["user"])
    displayName = serializers.CharField(allow_blank=True)  # noqa: N815
    roles = RolesBody()
    tenants = MembershipBody(many=True)
    identity = IdentityData()
    tos = serializers.CharField(allow_null=True, help_text="MD5 of the terms last acknowledged.")
    active = serializers.BooleanField()
    createdAt = serializers.DateTimeField()  # noqa: N815
    modifiedAt = serializers.DateTimeField()  # noqa: N815
