"""Replays of rulesets, and recommendations."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from django.db import models
from django.db.models import Value

from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs.queue import Job


class ReplayRun(Job):
    """One replay of a ruleset over a tenant's log. ``digest`` is a hash of the whole input."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    #: The final states.
    FINISHED: ClassVar = (State.DONE, State.FAILED, State.CANCELLED)
    UNDER_WAY: ClassVar = (State.QUEUED, State.RUNNING)

    replay_id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    tenant_id = models.UUIDField()
    digest = models.CharField(max_length=64)
    state = models.CharField(max_length=9, choices=State.choices, default=State.QUEUED)
    #: 0 to 1.
    progress = models.FloatField(default=0)
    #: The ruleset: ``{seq}``, ``{draftId}``, or ``{digest}`` of the rules that were sent.
    subject = models.JSONField()
    #: The complete rules of the subject.
    rules = models.JSONField()
    first_day = models.DateField()
    last_day = models.DateField()
    warmup_days = models.PositiveSmallIntegerField()
    #: The settings of the Gateway that the caller knows: ``{nocache?, nonDeterministic?,
    #: keysPerUser?}``.
    gateway = models.JSONField(default=dict, blank=True)
    #: All entries are replayed, and not a sample.
    is_exact = models.BooleanField(default=False, db_default=False)
    requested_by = models.CharField(max_length=320)
    requested_at = models.DateTimeField(default=now)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    result = models.JSONField(null=True)

    class Meta:
        ordering = ("-requested_at", "-replay_id")
        constraints = (models.UniqueConstraint(fields=["tenant_id", "digest"], name="replay_input_unique"),)
        indexes = (
            models.Index(fields=["tenant_id", "-requested_at"], name="replay_newest"),
            models.Index(fields=["-requested_at", "-replay_id"], name="replay_by_time"),
            models.Index(
                fields=["requested_at"],
                name="replay_under_way",
                condition=models.Q(state__in=["queued", "running"]),
            ),
        )

    def __str__(self) -> str:
        return f"replay {self.replay_id} of {self.tenant_id}: {self.state}"


class Mining(Job):
    """The last search for recommendations of a tenant."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    UNDER_WAY: ClassVar = (State.QUEUED, State.RUNNING)

    tenant_id = models.UUIDField(primary_key=True)
    state = models.CharField(max_length=7, choices=State.choices, default=State.QUEUED)
    #: 0 to 1.
    progress = models.FloatField(default=0)
    requested_by = models.CharField(max_length=320)
    requested_at = models.DateTimeField(default=now)
    finished_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    #: The digest of the input of the last completed search, and its report.
    digest = models.CharField(max_length=64, blank=True)
    report = models.JSONField(null=True)

    class Meta:
        ordering = ("-requested_at", "tenant_id")
        indexes = (
            models.Index(fields=["-requested_at", "-tenant_id"], name="mining_by_time"),
            models.Index(
                fields=["requested_at"],
                name="mining_under_way",
                condition=models.Q(state__in=["queued", "running"]),
            ),
        )

    def __str__(self) -> str:
        return f"mining of {self.tenant_id}: {self.state}"


class Recommendation(models.Model):
    """A recommended change of a tenant's rules, with its predicted effect."""

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
    #: Identifies kind and subject. It does not depend on the log.
    fingerprint = models.CharField(max_length=32)
    #: The position among the recommendations of the same search.
    rank = models.PositiveSmallIntegerField()
    #: How it changes the rules, where there is another way; else empty.
    variant = models.CharField(max_length=16, blank=True, default="", db_default="")
    title = models.TextField()
    why = models.JSONField()
    rules = models.JSONField()
    patch = models.JSONField()
    evidence = models.JSONField()
    predicted = models.JSONField()
    #: Codes of what the log cannot show.
    caveats = models.JSONField(default=list, db_default=Value([], models.JSONField()))
    #: The other variants: their ``variant``, ``title``, ``why``, ``rules``, ``patch`` and ``predicted``.
    alternatives = models.JSONField(default=list, db_default=Value([], models.JSONField()))
    #: The replay of the rules with this recommendation. Null if it was deleted or an alternative was chosen.
    replay = models.ForeignKey(ReplayRun, on_delete=models.SET_NULL, null=True, related_name="+")
    #: The estimated saving in the window, in ms of warehouse time.
    estimate_ms = models.BigIntegerField()
    #: The revision of the rules and the days that the search used.
    seq = models.PositiveIntegerField()
    first_day = models.DateField()
    last_day = models.DateField()
    mined_at = models.DateTimeField(default=now)
    draft_id = models.UUIDField(null=True)
    decided_by = models.CharField(max_length=320, blank=True)
    decided_at = models.DateTimeField(null=True)
    #: The reason of the dismissal, and the day when it ends.
    reason = models.TextField(blank=True)
    until = models.DateField(null=True)
    #: The revision of the rules that contains the recommendation.
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
        indexes = (
            models.Index(fields=["tenant_id", "state"], name="recommendation_by_state"),
            models.Index(fields=["-mined_at", "-recommendation_id"], name="recommendation_by_time"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.title}: {self.state}"

    @property
    def days(self) -> int:
        """How many days the search used."""
        return (self.last_day - self.first_day).days + 1


class Effect(models.Model):
    """The effect of an accepted recommendation, measured daily."""

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
        indexes = (models.Index(fields=["tenant_id"], name="effect_of_tenant"),)

    def __str__(self) -> str:
        return f"effect of {self.recommendation_id}: {self.state}"
