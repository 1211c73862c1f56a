"""Rulesets, invalidation markers and cache metadata of tenants."""

from __future__ import annotations

import uuid
from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from accounts.models import Tenant
from tenantadmin.lib.core.formats import exact_minute
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.json_text import JSONTextField

Row = TypeVar("Row", bound=models.Model)


class TenantRowsQuerySet(models.QuerySet[Row]):
    def of_live_tenant(self, tenant_id: uuid.UUID) -> Self:
        """Return the rows of a tenant, or none if the tenant is deleted."""
        return self.filter(tenant=tenant_id, tenant__deleted_at__isnull=True)


class MarkerQuerySet(TenantRowsQuerySet[Row]):
    def remaining(self) -> Self:
        """Return the markers that are not removed. They may have expired."""
        return self.filter(removed_at__isnull=True)

    def active(self) -> Self:
        """Return the markers that are neither removed nor expired."""
        return self.remaining().filter(expires_at__gt=Now())

    def with_superseded(self) -> Any:
        """Annotate markers with ``superseded``: the same rule has a newer active marker."""
        newer = Marker.objects.active().filter(
            Q(invalidated_at__gt=OuterRef("invalidated_at"))
            | Q(invalidated_at=OuterRef("invalidated_at"), pk__gt=OuterRef("pk")),
            tenant=OuterRef("tenant"),
            target_rule_id=OuterRef("target_rule_id"),
        )
        return self.annotate(superseded=Exists(newer))


class Ruleset(models.Model):
    """The ruleset of a live tenant. Deleting the tenant removes the row and keeps its history."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, primary_key=True, related_name="ruleset")
    #: ``[Rule]``, with all defaults filled in.
    rules = models.JSONField(default=list)
    seq = models.PositiveIntegerField(default=0, editable=False)
    #: Grows as text with each write and is never repeated (`rules.ruleset.cache_bust`).
    cache_bust = models.CharField(max_length=40, editable=False)
    modified_at = models.DateTimeField(default=now, editable=False)

    def __str__(self) -> str:
        return f"ruleset of {self.tenant_id}, revision {self.seq}"


class Marker(models.Model):
    """An invalidation marker: results of a rule that were cached before it are stale.

    A deleted marker keeps its row, because its id is never used again.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="markers")
    marker_id = models.CharField(max_length=200)
    target_rule_id = models.CharField(max_length=128)
    #: The ``n`` of a marker made by cross-rule invalidation; null for one made by hand.
    number = models.PositiveBigIntegerField(null=True, editable=False)
    #: Copied from the target rule when the marker was made; seconds.
    ttl_seconds = models.PositiveIntegerField()
    invalidated_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(editable=False)
    #: The email of the user who made it, or by whose token a Gateway did. Empty for a marker from before.
    created_by = models.CharField(max_length=320, db_default="", editable=False)
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)
    #: The stamp of the last change or removal, by which pollers read (`accounts.tenants.stamps`).
    changed_at = models.DateTimeField(db_default=Now(), editable=False)
    #: ``{reason?}``
    metadata = models.JSONField(default=dict, blank=True)
    #: ``{ruleId?, statement?, triggeredBy?}``
    invalidated_by = models.JSONField(default=dict, blank=True)

    objects = MarkerQuerySet.as_manager()

    class Meta:
        ordering = ("-invalidated_at", "-id")
        verbose_name = "invalidation marker"
        constraints = (
            models.UniqueConstraint(fields=["tenant", "marker_id"], name="marker_id_once_per_tenant"),
            models.UniqueConstraint(
                fields=["tenant", "target_rule_id", "number"],
                condition=models.Q(number__isnull=False),
                name="marker_number_once_per_rule",
            ),
        )
        indexes = (
            models.Index(
                fields=["tenant", "-invalidated_at", "-id"],
                condition=models.Q(removed_at__isnull=True),
                name="marker_newest",
            ),
            models.Index(
                fields=["tenant", "target_rule_id", "-invalidated_at", "-id"],
                condition=models.Q(removed_at__isnull=True),
                name="marker_of_rule",
            ),
            models.Index(
                fields=["tenant", "expires_at"],
                condition=models.Q(removed_at__isnull=True),
                name="marker_expiry",
            ),
            models.Index(fields=["-invalidated_at", "-id"], name="marker_by_time"),
            models.Index(fields=["changed_at"], name="marker_changed"),
            models.Index(fields=["tenant", "changed_at"], name="marker_changed_of_tenant"),
        )

    def __str__(self) -> str:
        return self.marker_id


class CacheMetadata(models.Model):
    """Metadata that a Gateway stored about one cached result."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="cache_metadata")
    cache_key = models.CharField(max_length=256)
    rule_id = models.CharField(max_length=128)
    #: The optional members of the document.
    document = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    last_accessed_at = models.DateTimeField(null=True, blank=True)

    objects = TenantRowsQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "cache_key")
        verbose_name_plural = "cache metadata"
        constraints = (models.UniqueConstraint(fields=["tenant", "cache_key"], name="cache_key_once"),)
        indexes = (models.Index(fields=["-created_at", "-id"], name="cache_metadata_newest"),)

    def __str__(self) -> str:
        return self.cache_key


class RuleDraft(models.Model):
    """A ruleset that is not published yet. It may have lint errors, and is deleted with its tenant."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="rule_drafts")
    name = models.CharField(max_length=200, blank=True)
    #: The rules as sent: any array, with properties in the order of the writer.
    rules = JSONTextField(default=list, blank=True)
    #: The revision of the rules that the draft was made from.
    base_seq = models.PositiveIntegerField()
    #: ``RuleLintResult`` of the last write.
    lint = models.JSONField(default=dict, blank=True)
    #: Counts the writes of the draft.
    version = models.PositiveIntegerField(default=0, editable=False)
    #: Normalized emails.
    created_by = models.CharField(max_length=320)
    modified_by = models.CharField(max_length=320)
    created_at = models.DateTimeField(default=now, editable=False)
    modified_at = models.DateTimeField(default=now, editable=False)

    objects = TenantRowsQuerySet.as_manager()

    class Meta:
        ordering = ("-modified_at", "id")
        verbose_name = "rule draft"
        indexes = (
            models.Index(fields=["tenant", "-modified_at", "id"], name="draft_newest"),
            models.Index(fields=["-modified_at", "-id"], name="draft_by_time"),
        )

    def __str__(self) -> str:
        return self.name or str(self.id)

    @property
    def title(self) -> str:
        """The draft's name for a sentence or a list."""
        return f"Draft {self.name}" if self.name else f"Unnamed draft of {exact_minute(self.created_at)}"
