"""What staff keep for themselves on the admin site."""

from __future__ import annotations

from django.db import models

from accounts.models.users import User
from tenantadmin.lib.core.timestamps import now


class AuditView(models.Model):
    """Filters of the audit that a member of staff has saved under a name."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="audit_views")
    name = models.CharField(max_length=100)
    #: The query of the page's address: ``{name: text}``.
    filters = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=["user", "name"], name="audit_view_once"),)

    def __str__(self) -> str:
        return self.name


class Snooze(models.Model):
    """A row of Home that a member of staff does not want to see for some days, or until it changes."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="snoozes")
    #: The panel of Home, and the row's key in it.
    panel = models.CharField(max_length=16)
    subject = models.CharField(max_length=64)
    until = models.DateTimeField()
    #: What the row said when it was acknowledged: a list of texts, or a number. It is shown again when it
    #: says more. Null: it was snoozed.
    seen = models.JSONField(null=True)

    class Meta:
        ordering = ("pk",)
        constraints = (models.UniqueConstraint(fields=["user", "panel", "subject"], name="snooze_once"),)

    def __str__(self) -> str:
        return f"{self.panel}: {self.subject}"
