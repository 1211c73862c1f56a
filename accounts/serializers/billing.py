"""Serializers of requests on accounts, domains, FQDNs and grants. Contract: accounts (docs/tenants.md)."""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from functools import partial

from rest_framework import serializers

from accounts.access.scopes import GRANTABLE
from accounts.models.billing import GrantResource, Plan
from accounts.serializers.fields import EmailField, FqdnField, NameField
from tenantadmin.lib.http.serializers import (
    IgnoredField,
    JsonBooleanField,
    JsonIntegerField,
    OneOfField,
    StrictSerializer,
    StrictUuidField,
    TimestampField,
    validated,
)

PERMISSIONS = sorted(GRANTABLE)


class WritableAccount(StrictSerializer):
    """The members of an account that can be written."""

    name = NameField(help_text="1 to 100 characters.")
    owners = serializers.ListField(
        child=EmailField(), allow_empty=False, max_length=100, help_text="Emails of existing users."
    )
    billingEmail = EmailField(required=False, allow_blank=True)


class AccountCreate(WritableAccount):
    """An account to create."""

    plan = OneOfField(choices=Plan.values, required=False)


class AccountBody(AccountCreate):
    """An account to replace. Read-only members may be sent back unchanged."""

    accountId = StrictUuidField(required=False)
    createdAt = TimestampField(required=False)
    seq = JsonIntegerField(required=False, min_value=0, help_text="A stale one is a 409.")
    modifiedAt = IgnoredField(required=False)


#: What checks the shape of a body of ``PUT``, for `write_account`.
parse_account = partial(validated, AccountBody)


class DomainCreate(StrictSerializer):
    """A domain to register."""

    domain = FqdnField()


class DomainVerify(StrictSerializer):
    """How to verify a domain: by its DNS challenge, unless a platform admin vouches for it."""

    may_be_absent = True

    manual = JsonBooleanField(
        required=False, help_text="For platform admins: verify the domain without checking the DNS."
    )


class FqdnParameters(StrictSerializer):
    tenant = StrictUuidField(required=False, help_text="Only the names of this tenant.")


class GrantCreate(StrictSerializer):
    """Permissions to delegate."""

    grantee = EmailField(help_text="Email of an existing user.")
    resource = OneOfField(choices=GrantResource.values)
    resourceId = StrictUuidField()
    permissions = serializers.ListField(
        child=OneOfField(choices=PERMISSIONS), allow_empty=False, max_length=20
    )
    expiresAt = TimestampField(required=False)
