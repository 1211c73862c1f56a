"""Assessments: what was read of a warehouse's own history, and what came of it."""

from __future__ import annotations

from django.db import models

from tenantadmin.lib.core.timestamps import now


class Assessment(models.Model):
    """The history that a tenant of kind *assessment* has for a log."""

    tenant_id = models.UUIDField(primary_key=True)
    source = models.CharField(max_length=10)
    name = models.CharField(max_length=100)
    #: The email of the owner; empty without one.
    owner = models.EmailField(max_length=320, blank=True)
    created_at = models.DateTimeField(default=now)
    #: By digest of a file and the choices, what was read of it (`analytics.history.entries.Read`).
    files = models.JSONField(default=dict)
    #: What the command printed last as JSON; null before its first end.
    report = models.JSONField(null=True)

    class Meta:
        ordering = ("-created_at", "-tenant_id")
        indexes = (
            models.Index(fields=["-created_at", "-tenant_id"], name="assessment_by_time"),
            models.Index(fields=["name", "owner"], name="assessment_by_name"),
        )

    def __str__(self) -> str:
        return f"assessment {self.tenant_id}"
