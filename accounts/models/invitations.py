"""Invitations of people into tenants. Contract: Invitations."""

from __future__ import annotations

import uuid

from django.db import models

from accounts.models.pending import Pending
from accounts.models.querysets import PendingQuerySet
from accounts.models.tenants import Tenant
from accounts.models.users import MembershipRole, User
from tenantadmin.lib.core.timestamps import now


class InvitationOutcome(models.TextChoices):
    """How an invitation ended."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


class InvitationRefusal(models.Model):
    """An address that gets no more mails of invitations. Its owner, who may be no user, said so by a link."""

    email = models.EmailField(max_length=320, unique=True)
    refused_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("-refused_at", "-id")
        indexes = (models.Index(fields=["-refused_at", "-id"], name="invitation_refusal_newest"),)

    def __str__(self) -> str:
        return self.email


class Invitation(Pending):
    """An offer of a role in a tenant to an address, which may not be a user's yet."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField(max_length=320)
    role = models.CharField(max_length=10, choices=MembershipRole.choices)
    #: What the inviting user writes to the invited one.
    message = models.CharField(max_length=500, blank=True, default="")
    invited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    outcome = models.CharField(max_length=10, choices=InvitationOutcome.choices, blank=True, default="")

    objects = PendingQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=["-created_at", "-id"], name="invitation_newest"),
            models.Index(fields=["tenant", "-created_at"], name="invitation_of_tenant"),
            models.Index(fields=["email", "-created_at"], name="invitation_to_address"),
        )

    def __str__(self) -> str:
        return f"invitation of {self.email}"
