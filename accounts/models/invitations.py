"""Invitations of people into tenants. Contract: Invitations."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.db import models

from accounts.models.tenants import Tenant
from accounts.models.users import MembershipRole, User
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from typing import Self


class InvitationOutcome(models.TextChoices):
    """How an invitation ended."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self) -> Self:
        """Return the invitations that can be accepted: neither ended nor expired, and of a live tenant."""
        return self.filter(ended_at=None, expires_at__gt=now(), tenant__deleted_at=None)


class Invitation(models.Model):
    """An offer of a role in a tenant to an address, which may not be a user's yet."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField(max_length=320)
    role = models.CharField(max_length=10, choices=MembershipRole.choices)
    #: What the inviting user writes to the invited one.
    message = models.CharField(max_length=500, blank=True, default="")
    invited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now, editable=False)
    expires_at = models.DateTimeField(db_index=True)
    #: Null until it is accepted, declined or withdrawn.
    ended_at = models.DateTimeField(null=True, blank=True, editable=False)
    outcome = models.CharField(max_length=10, choices=InvitationOutcome.choices, blank=True, default="")

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=["-created_at", "-id"], name="invitation_newest"),
            models.Index(fields=["tenant", "-created_at"], name="invitation_of_tenant"),
            models.Index(fields=["email", "-created_at"], name="invitation_to_address"),
        )

    def __str__(self) -> str:
        return f"invitation of {self.email}"

    @property
    def state(self) -> str:
        """How it ended, ``open`` or ``expired``."""
        return self.outcome or ("open" if self.expires_at > now() else "expired")
