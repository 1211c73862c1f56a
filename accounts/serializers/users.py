"""Serializers of requests on users, roles, memberships, invitations and personal access tokens.

Contract: User, Roles, Tenant membership.
"""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rest_framework import serializers

from accounts.access.principal import WILDCARD
from accounts.access.scopes import Scope
from accounts.memberships import MembershipEntry
from accounts.models.users import MembershipRole, PrimaryRole
from accounts.serializers.fields import EmailField
from tenantadmin.lib.http.serializers import (
    IgnoredField,
    JsonBooleanField,
    JsonIntegerField,
    LineField,
    OneOfField,
    StrictCharField,
    StrictSerializer,
    TimestampField,
)

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


METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_MAX_ENTRIES = 1000
_names_me: Final = re.compile(r"/users/me(/|$)", re.IGNORECASE).match


class IdListField(serializers.ListField):
    """A list of UUIDs, or of only the wildcard."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=StrictCharField(), required=False, max_length=_MAX_ENTRIES, **options)

    def to_internal_value(self, data: Any) -> list[str]:
        names = super().to_internal_value(data)
        if names == [WILDCARD]:
            return names
        if WILDCARD in names:
            raise serializers.ValidationError(
                "The wildcard '*' cannot be combined with ids.", code="wildcard-not-alone"
            )
        # Each invalid id gets its own error, with its index in the array.
        ids = serializers.ListField(child=serializers.UUIDField()).run_validation(names)
        return list(dict.fromkeys(map(str, ids)))


class Endpoint(StrictSerializer):
    """Methods and paths that a PAT is limited to. Without methods all are allowed."""

    methods = serializers.ListField(child=OneOfField(choices=METHODS), required=False)
    path = serializers.RegexField(
        r"^/[^\x00-\x1f]*$",
        max_length=500,
        help_text="A glob: '/tenants/*'. In '/users/…' it names the address: `me` is refused.",
    )

    def validate_path(self, path: str) -> str:
        if _names_me(path):
            raise serializers.ValidationError(
                "Name the address in place of 'me': '/users/ada@example.org/*'.", code="names-me"
            )
        return path


class PatBody(StrictSerializer):
    """A new PAT. Empty ``endpoints`` mean all. Without ``expiresAt`` it is valid for a year.

    Without ``tenants`` and ``accounts`` it covers only its owner's own profile and tokens.
    """

    name = LineField(max_length=100)
    scopes = serializers.ListField(child=OneOfField(choices=SCOPES), allow_empty=False, max_length=100)
    tenants = IdListField(help_text='Tenant ids, or `["*"]` (platform admins).')
    accounts = IdListField(help_text='Account ids, or `["*"]` (platform admins).')
    endpoints = Endpoint(many=True, required=False)
    expiresAt = TimestampField(required=False, help_text="At most two years ahead.")


class Rotation(StrictSerializer):
    """How long a former secret is used beside the new one."""

    may_be_absent = True

    graceSeconds = JsonIntegerField(
        default=86_400, min_value=0, max_value=604_800, help_text="A day unless given, at most a week."
    )


class PatRotation(Rotation):
    """How long the former secret, and tokens minted from it, are accepted."""


class InvitationBody(StrictSerializer):
    """Whom to invite, and as what. ``message`` is part of the mail."""

    email = EmailField()
    role = OneOfField(choices=MembershipRole.choices)
    message = StrictCharField(required=False, allow_blank=True, max_length=500, default="")
