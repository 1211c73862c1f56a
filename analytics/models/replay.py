"""Replays of rulesets."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from django.db import models

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
