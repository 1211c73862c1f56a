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
