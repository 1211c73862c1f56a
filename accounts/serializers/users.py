"""Serializers of requests on users, roles and memberships.

Contract: User, Roles, Tenant membership.
"""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from accounts.access.scopes import Scope
from accounts.memberships import MembershipEntry
from accounts.models.users import MembershipRole, PrimaryRole
from tenantadmin.lib.http.serializers import (
    IgnoredField,
    JsonBooleanField,
    LineField,
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
    displayName = LineField(required=False, allow_blank=True, max_length=200)
    roles = RolesBody(required=False)
    tenants = MembershipBody(many=True, required=False)
    active = JsonBooleanField(required=False)
    createdAt = TimestampField(required=False, help_text="The stored one, or absent.")
    identity = IgnoredField(required=False, allow_null=True, help_text="Read-only; ignored.")
    tos = IgnoredField(required=False, allow_null=True, help_text="Read-only; ignored.")
    modifiedAt = IgnoredField(required=False, allow_null=True, help_text="Read-only; ignored.")


class UserParameters(StrictSerializer):
    userid = StrictCharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="A part of the email, in any case; empty means all.",
    )
