"""Mails in the outbox."""

from __future__ import annotations

from uuid import uuid4

from django.db import models

from tenantadmin.lib.jobs.outbox import Message


class Mail(Message):
    """A mail to one user, as it is sent."""

    class State(models.TextChoices):
        QUEUED = "queued"
        DELIVERED = "delivered"
        #: The mail server did not accept it within 24 hours.
        FAILED = "failed"

    mail_id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    #: The tenant that it is about, if any.
    tenant_id = models.UUIDField(null=True, db_index=True)
    to = models.EmailField(max_length=320, db_index=True)
    subject = models.TextField()
    text = models.TextField()
    html = models.TextField()
    state = models.CharField(max_length=9, choices=State.choices, default=State.QUEUED)

    class Meta:
        ordering = ("-created_at", "-mail_id")
        indexes = (
            models.Index(fields=["due_at"], name="mail_queued", condition=models.Q(state="queued")),
            models.Index(fields=["-created_at", "-mail_id"], name="mail_by_time"),
        )

    def __str__(self) -> str:
        return f"{self.subject} to {self.to}: {self.state}"
