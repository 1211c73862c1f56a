"""Rollups, summary documents and builds.

Tenants are referred to by id, not by foreign key, because summaries outlive them.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from django.conf import settings
from django.db import models

from tenantadmin.core.timestamps import now


class DayRollup(models.Model):
    """The rollup files of a day."""

    tenant_id = models.UUIDField()
    day = models.DateField()
    #: The build of the partition that the rollup was made from.
    build = models.CharField(max_length=32)
    version = models.PositiveIntegerField()
    #: Table name to object key.
    files = models.JSONField()
    bytes = models.PositiveBigIntegerField()
    #: The sums of the day, for charts and `TenantHealth`. Null in rows from before until `update_health` ran.
    hits = models.BigIntegerField(null=True)
    misses = models.BigIntegerField(null=True)
    warehouse_ms = models.BigIntegerField(null=True)
    built_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "-day")
        constraints = (models.UniqueConstraint(fields=["tenant_id", "day"], name="day_rollup_unique"),)

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.day}"


class MergedRollup(models.Model):
    """The rollup files of a month, merged from its days, or of a year, merged from its months."""

    tenant_id = models.UUIDField()
    #: ``2026-03`` or ``2026``.
    period = models.CharField(max_length=7)
    build = models.CharField(max_length=32)
    #: Digest over the builds of its days.
    source = models.CharField(max_length=64)
    #: Table name to object key.
    files = models.JSONField()
    bytes = models.PositiveBigIntegerField()
    built_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "-period")
        constraints = (models.UniqueConstraint(fields=["tenant_id", "period"], name="merged_rollup_unique"),)

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.period}"


class Kind(models.TextChoices):
    """The kinds of stored documents. Documents of one user are computed on request."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"
    RULES = "rules"
    OPPORTUNITIES = "opportunities"
    USERS = "users"


class SummaryDocument(models.Model):
    """A summary document as it is sent."""

    tenant_id = models.UUIDField()
    kind = models.CharField(max_length=16, choices=Kind.choices)
    #: ``2026-03-01``, ``2026-03``, ``2026``, or empty for the whole history.
    period = models.CharField(max_length=10, blank=True)
    #: The document. If it is too large for a row, this is empty and ``file`` is the key of its object.
    body = models.BinaryField()
    file = models.CharField(max_length=1024, blank=True, db_default="")
    bytes = models.PositiveBigIntegerField(default=0, db_default=0)
    etag = models.CharField(max_length=40)
    #: Digest over the rollups that the document was computed from.
    source = models.CharField(max_length=64)
    built_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "kind", "-period")
        constraints = (
            models.UniqueConstraint(fields=["tenant_id", "kind", "period"], name="summary_document_unique"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.period} of {self.tenant_id}"


class TenantHealth(models.Model):
    """How a tenant does, in one row. The build of a day writes it, so that no page has to read rollups.

    The windows of 1, 7 and 28 days end with ``last_day``. A hit rate is null without requests.
    """

    tenant_id = models.UUIDField(primary_key=True)
    #: The last day with log entries.
    last_day = models.DateField(null=True)
    rate_1 = models.FloatField("hit rate, 1 day", null=True)
    rate_7 = models.FloatField("hit rate, 7 days", null=True)
    rate_28 = models.FloatField("hit rate, 28 days", null=True)
    #: ``rate_28`` less ``rate_7``: positive if the hit rate fell.
    drop = models.FloatField(null=True)
    requests_7 = models.BigIntegerField("requests, 7 days", default=0)
    misses_7 = models.BigIntegerField("misses, 7 days", default=0)
    warehouse_ms_7 = models.BigIntegerField("warehouse ms, 7 days", default=0)
    #: Compacted days without current rollups, when the row was written.
    stale_days = models.PositiveIntegerField(default=0)
    #: Entries in quarantine, of all days.
    quarantined = models.PositiveBigIntegerField(default=0)
    updated_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id",)
        verbose_name_plural = "tenant health"
        indexes = (
            models.Index(models.F("drop").desc(nulls_last=True), "tenant_id", name="health_by_drop"),
            models.Index(fields=["-last_day", "tenant_id"], name="health_by_last_day"),
            models.Index(fields=["tenant_id"], name="health_stale", condition=models.Q(stale_days__gt=0)),
            models.Index(
                fields=["tenant_id"], name="health_quarantined", condition=models.Q(quarantined__gt=0)
            ),
        )

    def __str__(self) -> str:
        return f"health of {self.tenant_id}"


class Build(models.Model):
    """The record of one build of a period, for the admin site."""

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
        indexes = (
            models.Index(fields=["-started_at"], name="build_failed", condition=models.Q(state="failed")),
            models.Index(fields=["tenant_id", "-started_at"], name="build_of_tenant"),
            models.Index(
                fields=["tenant_id", "period"],
                name="build_running",
                condition=models.Q(state="running"),
            ),
        )

    def __str__(self) -> str:
        return f"{self.period or 'history'} of {self.tenant_id}: {self.state}"


class ReplayRun(models.Model):
    """One replay of a ruleset over a tenant's log. ``digest`` is that of all its input."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    #: The states that a run does not leave by itself.
    FINISHED: ClassVar = (State.DONE, State.FAILED, State.CANCELLED)

    replay_id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    tenant_id = models.UUIDField()
    digest = models.CharField(max_length=64)
    state = models.CharField(max_length=9, choices=State.choices, default=State.QUEUED)
    #: 0 to 1.
    progress = models.FloatField(default=0)
    #: Which ruleset: ``{seq}``, ``{draftId}``, or ``{digest}`` of the rules that were sent.
    subject = models.JSONField()
    #: The complete rules of the subject.
    rules = models.JSONField()
    first_day = models.DateField()
    last_day = models.DateField()
    warmup_days = models.PositiveSmallIntegerField()
    #: ``{nocache?, nonDeterministic?}``: what the caller knows about the Gateway.
    gateway = models.JSONField(default=dict, blank=True)
    requested_by = models.CharField(max_length=320)
    requested_at = models.DateTimeField(default=now)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    result = models.JSONField(null=True)

    class Meta:
        ordering = ("-requested_at", "-replay_id")
        constraints = (models.UniqueConstraint(fields=["tenant_id", "digest"], name="replay_input_unique"),)
        indexes = (models.Index(fields=["tenant_id", "-requested_at"], name="replay_newest"),)

    def __str__(self) -> str:
        return f"replay {self.replay_id} of {self.tenant_id}: {self.state}"


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
        )

    def __str__(self) -> str:
        return f"digest {self.period} of {self.tenant_id} to {self.user}: {self.state}"


class Mining(models.Model):
    """The last search for recommendations of a tenant."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    tenant_id = models.UUIDField(primary_key=True)
    state = models.CharField(max_length=7, choices=State.choices, default=State.QUEUED)
    #: 0 to 1.
    progress = models.FloatField(default=0)
    requested_by = models.CharField(max_length=320)
    requested_at = models.DateTimeField(default=now)
    finished_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    #: The digest of the input of the last search that was done, and what it found besides recommendations.
    digest = models.CharField(max_length=64, blank=True)
    report = models.JSONField(null=True)

    class Meta:
        ordering = ("-requested_at", "tenant_id")

    def __str__(self) -> str:
        return f"mining of {self.tenant_id}: {self.state}"


class Recommendation(models.Model):
    """A change of a tenant's rules that the service recommends, with what it is predicted to do."""

    class State(models.TextChoices):
        OPEN = "open"
        DRAFTED = "drafted"
        ACCEPTED = "accepted"
        DISMISSED = "dismissed"
        SUPERSEDED = "superseded"

    #: The states in which it can be accepted.
    UNDECIDED: ClassVar = (State.OPEN, State.DRAFTED)

    recommendation_id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    tenant_id = models.UUIDField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    #: Changes with each write.
    version = models.PositiveIntegerField(default=0)
    kind = models.CharField(max_length=16)
    #: The same for the same kind and subject, whatever the log.
    fingerprint = models.CharField(max_length=32)
    #: Its place among the recommendations of its search.
    rank = models.PositiveSmallIntegerField()
    title = models.TextField()
    why = models.JSONField()
    rules = models.JSONField()
    patch = models.JSONField()
    evidence = models.JSONField()
    predicted = models.JSONField()
    #: What it was estimated to save in the window, in ms of warehouse time.
    estimate_ms = models.BigIntegerField()
    #: The revision of the rules and the days that it was made from.
    seq = models.PositiveIntegerField()
    first_day = models.DateField()
    last_day = models.DateField()
    mined_at = models.DateTimeField(default=now)
    draft_id = models.UUIDField(null=True)
    decided_by = models.CharField(max_length=320, blank=True)
    decided_at = models.DateTimeField(null=True)
    #: Why it was dismissed, and until when.
    reason = models.TextField(blank=True)
    until = models.DateField(null=True)
    #: The revision of the rules that has it.
    accepted_seq = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ("-mined_at", "rank", "recommendation_id")
        constraints = (
            models.UniqueConstraint(
                fields=["tenant_id", "fingerprint"],
                condition=models.Q(state__in=["open", "drafted"]),
                name="recommendation_undecided_unique",
            ),
        )
        indexes = (models.Index(fields=["tenant_id", "state"], name="recommendation_by_state"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.title}: {self.state}"


class Effect(models.Model):
    """What an accepted recommendation did, measured daily."""

    class State(models.TextChoices):
        WAITING = "waiting"
        MEASURING = "measuring"
        CLOSED = "closed"

    recommendation = models.OneToOneField(Recommendation, on_delete=models.CASCADE, primary_key=True)
    tenant_id = models.UUIDField()
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    #: The whole days that were measured; null before the first measurement.
    first_day = models.DateField(null=True)
    last_day = models.DateField(null=True)
    #: The digest of the input of the last measurement.
    digest = models.CharField(max_length=64, blank=True)
    measured_at = models.DateTimeField(null=True)
    result = models.JSONField(null=True)

    class Meta:
        ordering = ("-measured_at", "recommendation_id")

    def __str__(self) -> str:
        return f"effect of {self.recommendation_id}: {self.state}"
