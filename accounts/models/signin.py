"""One-time sign-in links. Only the SHA-256 of a link's token is stored."""

from __future__ import annotations

from django.db import models

from tenantadmin.lib.core.timestamps import now


class MagicLink(models.Model):
    """An emailed link, valid once and until it expires. Its email may not belong to a user yet."""

    #: SHA-256 of the token's text.
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    email = models.EmailField(max_length=320, db_index=True)
    #: Where signing in leads, unless verifying names another target.
    return_to = models.CharField(max_length=4096)
    created_at = models.DateTimeField(default=now, editable=False)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("-created_at",)
        indexes = (models.Index(fields=["-created_at", "-id"], name="magic_link_newest"),)

    def __str__(self) -> str:
        return f"link for {self.email}"

    def is_open(self) -> bool:
        """Return True if the link is neither used nor expired."""
        return self.used_at is None and self.expires_at > now()
