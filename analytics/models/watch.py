"""Digests, alerts, and who gets them."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from django.conf import settings
from django.db import models, transaction

from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs.outbox import Message
from tenantadmin.lib.jobs.queue import Job


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


class AlertKind(models.TextChoices):
    """What an alert watches."""

    HIT_RATE_FELL = "hit-rate-fell"
    LOG_LATE = "log-late"
    ERRORS = "errors"
    STALE_RISK = "stale-risk"
    LEAK = "leak"
    SAVINGS_FELL = "savings-fell"
    BUILD_FAILED = "build-failed"
    BILL = "bill"
    BILL_FORECAST = "bill-forecast"
    SAVINGS_LOW = "savings-low"
    #: Of the whole service alone.
    QUEUE_AGE = "queue-age"


def alert_kinds() -> list[tuple[str, str]]:
    """Return the choices of `Alert.kind`. Migrations name this function, so a new kind needs none."""
    return AlertKind.choices


class AlertQuerySet(models.QuerySet["Alert"]):
    def make_due(self, at: datetime) -> None:
        """Have these alerts evaluated at a time. Rows are locked in order, for two callers at once."""
        with transaction.atomic():
            ids = list(self.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
            if ids:
                Alert.objects.filter(pk__in=ids).update(due_at=at)


class Alert(Job):
    """A threshold for a number. When the alert fires: docs/alerts.md."""

    alert_id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    #: Null: the alert is about the whole service, and the settings define it.
    tenant = models.ForeignKey("accounts.Tenant", null=True, on_delete=models.CASCADE, related_name="alerts")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=16, choices=alert_kinds)
    threshold = models.FloatField()
    #: In hours or days, by kind; null if the kind has none.
    window = models.PositiveSmallIntegerField(null=True)
    #: ``[{type: "email", to} | {type: "webhook" | "slack" | "teams", url} | {type: "pagerduty", url, key}]``.
    channels = models.JSONField()
    #: ``{from, to}`` as ``HH:MM`` in UTC; null for none.
    quiet_hours = models.JSONField(null=True)
    enabled = models.BooleanField(default=True)
    #: Changes with each write, so that an evaluation of the former alert changes nothing.
    version = models.UUIDField(default=uuid4, editable=False)
    #: Of the secret that signs webhooks. The former one signs too until its end.
    secret_number = models.PositiveIntegerField(default=1, db_default=1)
    previous_ends_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=now)
    modified_at = models.DateTimeField(default=now)
    #: The last evaluation: when, the number (null without enough data), its other part (what the days before
    #: the window have if the number is a difference; the month so far if it is a forecast), the currency of
    #: money, why it is null (`NoNumber`), the builds that gave it (a hash), and how long that took.
    evaluated_at = models.DateTimeField(null=True)
    value = models.FloatField(null=True)
    before = models.FloatField(null=True)
    currency = models.CharField(max_length=3, blank=True, default="", db_default="")
    reason = models.CharField(max_length=200, blank=True, default="", db_default="")
    source = models.CharField(max_length=64, blank=True)
    took_ms = models.PositiveIntegerField(default=0)

    objects = AlertQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-alert_id")
        constraints = (
            models.UniqueConstraint(
                fields=["kind"], condition=models.Q(tenant=None), name="alert_of_service_unique"
            ),
        )
        indexes = (
            models.Index(fields=["due_at"], name="alert_due", condition=models.Q(enabled=True)),
            models.Index(fields=["-created_at", "-alert_id"], name="alert_by_time"),
        )

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


class AlertFiring(models.Model):
    """The time from a crossing of the threshold to the crossing back."""

    firing_id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="firings")
    started_at = models.DateTimeField(default=now)
    #: Null while it lasts.
    ended_at = models.DateTimeField(null=True)
    #: The number that crossed, and the alert's other part, currency, threshold and window at that time.
    value = models.FloatField()
    before = models.FloatField(null=True)
    currency = models.CharField(max_length=3, blank=True, default="", db_default="")
    threshold = models.FloatField()
    window = models.PositiveSmallIntegerField(null=True)

    class Meta:
        ordering = ("-started_at", "-firing_id")
        constraints = (
            models.UniqueConstraint(
                fields=["alert"], condition=models.Q(ended_at=None), name="alert_firing_once"
            ),
        )
        indexes = (models.Index(fields=["-started_at", "-firing_id"], name="alert_firing_by_time"),)

    def __str__(self) -> str:
        return f"firing of {self.alert_id}"


class AlertDelivery(Message):
    """One message to one channel. It is written with the crossing, and sent until it arrives."""

    class Occasion(models.TextChoices):
        STARTED = "started"
        ENDED = "ended"
        TEST = "test"

    class State(models.TextChoices):
        QUEUED = "queued"
        DELIVERED = "delivered"
        #: It was not accepted within 24 hours.
        FAILED = "failed"
        #: The receiver may not read it, or the alert was switched off before it was sent.
        SKIPPED = "skipped"

    #: Kept the same in every attempt, so that a receiver can tell a repeated message.
    delivery_id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries")
    #: Null for a test.
    firing = models.ForeignKey(AlertFiring, null=True, on_delete=models.CASCADE, related_name="deliveries")
    occasion = models.CharField(max_length=7, choices=Occasion.choices)
    #: As in `Alert.channels`, and its place there.
    channel = models.JSONField()
    channel_number = models.PositiveSmallIntegerField()
    #: What the message says; see `analytics.watch.alerts`.
    content = models.JSONField()
    state = models.CharField(max_length=9, choices=State.choices, default=State.QUEUED)

    class Meta:
        ordering = ("-created_at", "-delivery_id")
        verbose_name_plural = "alert deliveries"
        constraints = (
            models.UniqueConstraint(
                fields=["firing", "occasion", "channel_number"], name="alert_delivery_once"
            ),
        )
        indexes = (
            models.Index(fields=["due_at"], name="alert_delivery_queued", condition=models.Q(state="queued")),
            models.Index(fields=["-created_at", "-delivery_id"], name="alert_delivery_by_time"),
        )

    def __str__(self) -> str:
        return f"{self.occasion} of {self.alert_id}: {self.state}"
