"""Digests, who gets them by mail, and the requests to a language model."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from tenantadmin.lib.core.timestamps import now


class Digest(models.Model):
    """What a day or a week of a tenant's log says: docs/digests.md."""

    tenant_id = models.UUIDField()
    #: ``2026-03-01`` or ``2026-W09``.
    period = models.CharField(max_length=10)
    first_day = models.DateField()
    last_day = models.DateField()
    #: Digest over the builds of all days that it was made of.
    source = models.CharField(max_length=64)
    #: ``{kind, period, from, to, quiet, facts, names, sections}``; the texts of its sections are templates.
    document = models.JSONField()
    #: The texts of its sections as a language model rewrote them; null if the templates are shown.
    rewritten = models.JSONField(null=True)
    etag = models.CharField(max_length=40)
    made_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "-last_day", "-first_day")
        constraints = (models.UniqueConstraint(fields=["tenant_id", "period"], name="digest_unique"),)

    def __str__(self) -> str:
        return f"digest {self.period} of {self.tenant_id}"

    @property
    def templates(self) -> list[str]:
        """The texts of its sections as this service wrote them."""
        return [section["text"] for section in self.document["sections"]]

    @property
    def texts(self) -> list[str]:
        """The texts of its sections to show."""
        texts: list[str] = self.templates if self.rewritten is None else self.rewritten
        return texts


class ModelExchange(models.Model):
    """One request to the language model: all that was sent, and what came back."""

    class Outcome(models.TextChoices):
        #: Not answered yet, or the worker was killed meanwhile.
        SENT = "sent"
        ACCEPTED = "accepted"
        REFUSED = "refused"
        FAILED = "failed"

    tenant_id = models.UUIDField()
    #: Of the digest.
    period = models.CharField(max_length=10)
    sent_at = models.DateTimeField(default=now, db_index=True)
    #: Where to.
    address = models.CharField(max_length=2000)
    request = models.JSONField()
    answer = models.TextField(blank=True)
    outcome = models.CharField(max_length=8, choices=Outcome.choices, default=Outcome.SENT)
    #: Why the answer was refused, or what failed.
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ("-sent_at", "-id")
        indexes = (models.Index(fields=["tenant_id", "-sent_at", "-id"], name="model_exchange_newest"),)

    def __str__(self) -> str:
        return f"{self.period} of {self.tenant_id}: {self.outcome}"


class DigestFrequency(models.TextChoices):
    """Which digests of a tenant a user gets by mail."""

    DAILY = "daily"
    WEEKLY = "weekly"
    OFF = "off"


class DigestPreference(models.Model):
    """Which digests of a tenant a user wants by mail. Without a row: none."""

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


class DigestMail(models.Model):
    """A digest that a user gets by mail, once."""

    class State(models.TextChoices):
        QUEUED = "queued"
        #: Handed to the mail server. Stays so if the worker was killed or the connection broke meanwhile:
        #: the server may have accepted the mail, so it is not sent again.
        SENDING = "sending"
        SENT = "sent"
        #: The user no longer wants or may see it.
        SKIPPED = "skipped"
        FAILED = "failed"

    tenant_id = models.UUIDField()
    #: Of the digest.
    period = models.CharField(max_length=10)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="digest_mails")
    state = models.CharField(max_length=7, choices=State.choices, default=State.QUEUED)
    #: Refusals by the mail server.
    attempts = models.PositiveSmallIntegerField(default=0)
    #: A queued mail is sent from this time on.
    due_at = models.DateTimeField(default=now)
    sent_at = models.DateTimeField(null=True)

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
