"""Acknowledgements of terms by users. The documents themselves are in the object store."""

from __future__ import annotations

from django.db import models

from accounts.models import User
from tenantadmin.lib.core.timestamps import now


class Acknowledgement(models.Model):
    """One user's acknowledgement of one document."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="acknowledgements")
    #: MD5 of the normalized document.
    hash = models.CharField(max_length=32)
    acknowledged_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("-acknowledged_at", "-id")
        indexes = (models.Index(fields=["-acknowledged_at", "-id"], name="acknowledgement_newest"),)

    def __str__(self) -> str:
        return f"{self.hash} by {self.user}"
