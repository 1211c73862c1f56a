"""Tenants and their stored configuration. The ruleset, the second document, is in the rules app."""

from __future__ import annotations

import unicodedata
import uuid
from typing import Self

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models

from accounts.models.billing import Account
from accounts.models.querysets import TenantQuerySet
from tenantadmin.lib.core.timestamps import now


def fold_name(text: str) -> str:
    """Return ``text`` so that spellings that differ in case alone are equal: NFC, case folded."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def tenant_name_key(name: str) -> str:
    """Return the key of a tenant's name, which is unique among the live tenants of an account."""
    return fold_name(name.strip())


class TenantKind(models.TextChoices):
    """What a tenant is for. An assessment has a warehouse's own history for a log, and no Gateway."""

    CUSTOMER = "customer", "Customer"
    ASSESSMENT = "assessment", "Assessment"


class Tenant(models.Model):
    """A tenant of the Gateway; a tombstone once ``deleted_at`` is set."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="tenants")
    name = models.CharField(max_length=100)
    name_key = models.CharField(max_length=300, editable=False)
    created_at = models.DateTimeField(default=now, editable=False)
    #: Increases on every write of the configuration or the rules, and on deletion.
    modified_at = models.DateTimeField(default=now, editable=False, db_index=True)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    kind = models.CharField(
        max_length=10, choices=TenantKind, default=TenantKind.CUSTOMER, db_default=TenantKind.CUSTOMER
    )

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ("name", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["account", "name_key"],
                condition=models.Q(deleted_at__isnull=True),
                name="tenant_name_unique",
            ),
        )
        # The order of lists, and the start of a name, which staff search by.
        indexes = (
            models.Index(fields=["name", "id"], name="tenant_by_name"),
            models.Index(fields=["name_key"], name="tenant_name_start", opclasses=["varchar_pattern_ops"]),
            GinIndex(SearchVector("name", config="simple"), name="tenant_words"),
        )

    def __str__(self) -> str:
        return self.name


class SqlEngine(models.TextChoices):
    """Which engine runs a tenant's queries. ``auto`` decides by the bytes that a query reads."""

    DUCKDB = "duckdb", "DuckDB"
    SPARK = "spark", "Spark"
    AUTO = "auto", "Spark if a query reads much"


class StaffApproval(models.TextChoices):
    """What happens when staff want access to a tenant's logs."""

    NOTIFY = "notify", "Owners get a mail when staff take access"
    REQUIRED = "required", "An owner approves it first"


class TenantConfigQuerySet(models.QuerySet["TenantConfig"]):
    def requiring_approval(self) -> Self:
        """Return the configurations by which an owner approves the access of staff first."""
        return self.filter(document__access__staffApproval=StaffApproval.REQUIRED)


class TenantConfig(models.Model):
    """The configuration document of a live tenant; deletion removes the row and keeps its history."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, primary_key=True, related_name="config")
    #: ``{tenantName, fqdns, warehouse, defaults, logging, labels, access}``: what a PUT may set.
    document = models.JSONField()
    seq = models.PositiveIntegerField(default=0, editable=False)
    modified_at = models.DateTimeField(default=now, editable=False)
    #: Staff choose it; it is no part of the document.
    sql_engine = models.CharField(
        max_length=10, choices=SqlEngine, default=SqlEngine.DUCKDB, db_default=SqlEngine.DUCKDB
    )

    objects = TenantConfigQuerySet.as_manager()

    class Meta:
        verbose_name = "tenant configuration"

    def __str__(self) -> str:
        return f"configuration of {self.tenant_id}, revision {self.seq}"
