"""Billing accounts and what they hold: domains, host names, delegated permissions."""

from __future__ import annotations

import uuid
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Upper

from accounts.models.querysets import DeletableQuerySet, RevocableQuerySet, words_of
from accounts.models.tokens import PersonalAccessToken
from accounts.models.users import User
from tenantadmin.lib.core.timestamps import now


class Plan(models.TextChoices):
    FREE = "free"
    TEAM = "team"
    ENTERPRISE = "enterprise"


class Account(models.Model):
    """A billing entity that owns tenants and domains. ``seq`` is the number of its newest revision."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    plan = models.CharField(max_length=10, choices=Plan.choices, default=Plan.FREE)
    owners = models.ManyToManyField(User, related_name="owned_accounts")
    billing_email = models.EmailField(max_length=320, blank=True, default="")
    seq = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=now, editable=False)
    modified_at = models.DateTimeField(default=now, editable=False)
    #: Set while tombstones of its tenants still refer to a deleted account.
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = DeletableQuerySet.as_manager()

    class Meta:
        ordering = ("name", "id")
        # The order of lists, and what staff search by.
        indexes = (
            models.Index(fields=["name", "id"], name="account_by_name"),
            models.Index(OpClass(Upper("name"), name="text_pattern_ops"), name="account_name_start"),
            GinIndex(SearchVector("name", config="simple"), name="account_words"),
            models.Index(fields=["billing_email"], name="account_billing_email"),
        )

    def __str__(self) -> str:
        return self.name


class Domain(models.Model):
    """A domain that an account registered; verified for one account only."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="domains")
    name = models.CharField(max_length=253)
    #: What the DNS TXT record must hold.
    challenge = models.CharField(max_length=64)
    verified_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=["account", "name"], name="domain_once_per_account"),
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(verified_at__isnull=False), name="domain_verified_once"
            ),
        )
        indexes = (
            models.Index(
                fields=["-created_at"], condition=models.Q(verified_at__isnull=True), name="domain_waiting"
            ),
            models.Index(fields=["name", "id"], name="domain_by_name"),
            GinIndex(words_of("name"), name="domain_words"),
        )

    def __str__(self) -> str:
        return self.name


class Fqdn(models.Model):
    """A host name that routes to a tenant: claimed while ``released_at`` is null, then a tombstone."""

    name = models.CharField(max_length=253, unique=True)
    #: Not a foreign key: the tombstone of a name may outlive the tenant's row.
    tenant_id = models.UUIDField(db_index=True)
    claimed_at = models.DateTimeField(default=now)
    released_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)
        verbose_name = "FQDN"
        indexes = (GinIndex(words_of("name"), name="fqdn_words"),)

    def __str__(self) -> str:
        return self.name


class GrantResource(models.TextChoices):
    TENANT = "tenant"
    ACCOUNT = "account"


class GrantQuerySet(RevocableQuerySet["PermissionGrant"]):
    def in_force(self) -> Self:
        """Return the grants that are neither revoked nor expired, and whose token is not either."""
        tokens = PersonalAccessToken.objects.not_revoked().filter(
            pk=OuterRef("made_with_id"), expires_at__gt=now()
        )
        return super().in_force().filter(Q(made_with_id=None) | Exists(tokens))


class PermissionGrant(models.Model):
    """Permissions on one tenant or account that another user gave to a user, until they expire."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    grantee = models.ForeignKey(User, on_delete=models.CASCADE, related_name="grants")
    resource = models.CharField(max_length=10, choices=GrantResource.choices)
    resource_id = models.UUIDField()
    permissions = ArrayField(models.CharField(max_length=40))
    granted_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    #: The personal access token whose token gave it. The grant ends with it.
    made_with = models.ForeignKey(
        PersonalAccessToken,
        on_delete=models.CASCADE,
        null=True,
        related_name="grants",
        # A process of the previous release deletes tokens without their grants.
        db_constraint=False,
        db_index=False,
        editable=False,
    )
    created_at = models.DateTimeField(default=now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = GrantQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)
        indexes = (
            models.Index(fields=["resource", "resource_id"], name="grant_resource"),
            models.Index(fields=["resource_id"], name="grant_resource_id"),
            models.Index(fields=["-created_at", "-id"], name="grant_newest"),
            models.Index(
                fields=["made_with"], condition=models.Q(made_with__isnull=False), name="grant_made_with"
            ),
        )

    def __str__(self) -> str:
        return f"{', '.join(self.permissions)} on {self.resource} {self.resource_id} for {self.grantee}"
