"""Digests, mail preferences and mails, and the requests to a language model."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs.outbox import Message


class Digest(models.Model):
    """A digest of a day or a week of a tenant's log (docs/digests.md)."""

    tenant_id = models.UUIDField()
    #: ``2026-03-01`` or ``2026-W09``.
    period = models.CharField(max_length=10)
    first_day = models.DateField()
    last_day = models.DateField()
    #: A hash of the builds of all days that the digest was made from.
    source = models.CharField(max_length=64)
    #: ``{kind, period, from, to, quiet, facts, names, sections}``. The texts of sections are templates.
    document = models.JSONField()
    #: Only the previous release reads it.
    rewritten = models.JSONField(null=True)
    etag = models.CharField(max_length=40)
    made_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "-last_day", "-first_day")
        constraints = (models.UniqueConstraint(fields=["tenant_id", "period"], name="digest_unique"),)

    def __str__(self) -> str:
        return f"digest {self.period} of {self.tenant_id}"

    @property
    def texts(self) -> list[str]:
        """The texts of the sections."""
        return [section["text"] for section in self.document["sections"]]


class ModelExchange(models.Model):
    """One request to the language model: everything that was sent, and the answer."""

    class Outcome(models.TextChoices):
        #: Not answered yet, or the worker was killed.
        SENT = "sent"
        ACCEPTED = "accepted"
        REFUSED = "refused"
        FAILED = "failed"

    tenant_id = models.UUIDField()
    #: The period of the digest.
    period = models.CharField(max_length=10)
    sent_at = models.DateTimeField(default=now, db_index=True)
    #: The URL of the language model.
    address = models.CharField(max_length=2000)
    request = models.JSONField()
    answer = models.TextField(blank=True)
    outcome = models.CharField(max_length=8, choices=Outcome.choices, default=Outcome.SENT)
    #: The reason of a refusal or failure.
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ("-sent_at", "-id")
        indexes = (models.Index(fields=["tenant_id", "-sent_at", "-id"], name="model_exchange_newest"),)

    def __str__(self) -> str:
        return f"{self.period} of {self.tenant_id}: {self.outcome}"


class DigestFrequency(models.TextChoices):
    """The digests of a tenant that a user gets by mail."""

    DAILY = "daily"
    WEEKLY = "weekly"
    OFF = "off"


class DigestPreference(models.Model):
    """A user's choice of digests of a tenant. Without a row, the user gets none."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="digest_preferences"
    )
    tenant = models.ForeignKey("accounts.Tenant", on_delete=models.CASCADE, related_name="digest_preferences")
    frequency = models.CharField(max_length=6, choices=DigestFrequency.choices)

    class Meta:
        ordering = ("id",)
        constraints = (models.UniqueConstraint(fields=["user", "tenant"], name="digest_preference_unique"),)

    def __str__(self) -> str:
        return f"{self.user}: {self.frequency}"


class DigestMail(Message):
    """A mail with a digest to one user. It is sent at most once."""

    class State(models.TextChoices):
        QUEUED = "queued"
        #: Being sent. If the worker is killed or the connection breaks, the state stays, and the mail is not
        #: sent again, because the server may have accepted it.
        SENDING = "sending"
        DELIVERED = "sent"
        #: The user has unsubscribed or may no longer read it.
        SKIPPED = "skipped"
        FAILED = "failed"

    tenant_id = models.UUIDField()
    #: The period of the digest.
    period = models.CharField(max_length=10)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="digest_mails")
    state = models.CharField(max_length=7, choices=State.choices, default=State.QUEUED)
    finished_at = models.DateTimeField(null=True, db_column="sent_at")

    class Meta:
        ordering = ("-due_at", "-id")
        constraints = (
            models.UniqueConstraint(fields=["tenant_id", "period", "user"], name="digest_mail_once"),
        )
        indexes = (
            models.Index(fields=["due_at"], name="digest_mail_queued", condition=models.Q(state="queued")),
            models.Index(fields=["-due_at", "-id"], name="digest_mail_by_time"),
        )

    def __str__(self) -> str:
        return f"digest {self.period} of {self.tenant_id} to {self.user}: {self.state}"
