"""Alerts, when they fired, and the messages about it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from django.db import models, transaction

from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs.outbox import Message
from tenantadmin.lib.jobs.queue import Job

if TYPE_CHECKING:
    from datetime import datetime


class AlertKind(models.TextChoices):
    """What an alert watches."""

    HIT_RATE_FELL = "hit-rate-fell"
    LOG_LATE = "log-late"
    ERRORS = "errors"
    STALE_RISK = "stale-risk"
    LEAK = "leak"
    SAVINGS_FELL = "savings-fell"
    BUILD_FAILED = "build-failed"
    #: Of the whole service alone.
    QUEUE_AGE = "queue-age"


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
    kind = models.CharField(max_length=16, choices=AlertKind.choices)
    threshold = models.FloatField()
    #: In hours or days, by kind; null if the kind has none.
    window = models.PositiveSmallIntegerField(null=True)
    #: ``[{type: "email", to} | {type: "webhook" | "slack", url}]``.
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
    #: The last evaluation: when, the number (null without enough data), what the days before the window have
    #: if the number is a difference, the builds that gave it (a hash), and how long that took.
    evaluated_at = models.DateTimeField(null=True)
    value = models.FloatField(null=True)
    before = models.FloatField(null=True)
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
    #: The number that crossed, and `Alert.before`, threshold and window at that time.
    value = models.FloatField()
    before = models.FloatField(null=True)
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
    #: What the message says; see `analytics.alerts.messages`.
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
