"""Rollups and finished documents. Tenants stand here by their bare id, for summaries outlive them."""

from __future__ import annotations

from django.db import models

from tenantadmin.http.timestamps import now


class DayRollup(models.Model):
    """The rollup files of a day, and its entry in the yearly activity."""

    tenant_id = models.UUIDField()
    day = models.DateField()
    #: The build of the partition that it was made from.
    build = models.CharField(max_length=32)
    version = models.PositiveIntegerField()
    #: Table name to object key.
    files = models.JSONField()
    #: The day's entry of ``last365daysQueryActivity``.
    activity = models.JSONField()
    bytes = models.PositiveBigIntegerField()
    built_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "-day")
        constraints = (models.UniqueConstraint(fields=["tenant_id", "day"], name="day_rollup_unique"),)

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.day}"


class Kind(models.TextChoices):
    """The documents kept per tenant; documents of one user are derived when asked for."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"
    RULES = "rules"
    OPPORTUNITIES = "opportunities"
    USERS = "users"


class SummaryDocument(models.Model):
    """A finished document as it goes out."""

    tenant_id = models.UUIDField()
    kind = models.CharField(max_length=16, choices=Kind.choices)
    #: ``2026-03-01``, ``2026-03``, ``2026``, or empty for the whole history.
    period = models.CharField(max_length=10, blank=True)
    body = models.BinaryField()
    etag = models.CharField(max_length=40)
    #: Digest over the rollups that it was computed from.
    source = models.CharField(max_length=64)
    built_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "kind", "-period")
        constraints = (
            models.UniqueConstraint(fields=["tenant_id", "kind", "period"], name="summary_document_unique"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.period} of {self.tenant_id}"


class Build(models.Model):
    """One build of a period: for the admin site, and to see what is under way."""

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    tenant_id = models.UUIDField()
    period = models.CharField(max_length=10, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.RUNNING)
    started_at = models.DateTimeField(default=now, db_index=True)
    finished_at = models.DateTimeField(null=True)
    rows = models.PositiveBigIntegerField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ("-started_at",)

    def __str__(self) -> str:
        return f"{self.period or 'history'} of {self.tenant_id}: {self.state}"
