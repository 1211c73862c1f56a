"""What waits for an answer until it expires: invitations, requests of staff for access, and proposals."""

from __future__ import annotations

import uuid
from typing import Any, Self

from django.db import models

from accounts.models.querysets import PendingQuerySet
from accounts.models.tenants import Tenant
from accounts.models.users import MembershipRole, PrimaryRole, User
from tenantadmin.lib.core.timestamps import now


class Pending(models.Model):
    """Something about a tenant that is answered once. ``outcome`` is empty until then."""

    created_at = models.DateTimeField(default=now, editable=False)
    expires_at = models.DateTimeField(db_index=True)
    #: Null until it is answered or withdrawn.
    ended_at = models.DateTimeField(null=True, blank=True, editable=False)

    outcome: Any

    class Meta:
        abstract = True

    @property
    def state(self) -> str:
        """How it ended, ``open`` or ``expired``."""
        return self.outcome or ("open" if self.expires_at > now() else "expired")

    def end(self, outcome: str, **values: Any) -> bool:
        """Set the outcome, and other fields. Return False if it is no longer open.

        Of two transactions that end it at the same time, one gets True.
        """
        changes = {"ended_at": now(), "outcome": outcome, **values}
        rows = type(self)._default_manager.filter(pk=self.pk, ended_at=None, expires_at__gt=now())
        if not rows.update(**changes):
            return False
        for name, value in changes.items():
            setattr(self, name, value)
        return True


class AccessOutcome(models.TextChoices):
    """How a request ended."""

    APPROVED = "approved"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


class AccessRequest(Pending):
    """A request of a user of the staff for access for some hours, which begin with the approval."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="access_requests")
    staff = models.ForeignKey(User, on_delete=models.CASCADE, related_name="access_requests")
    hours = models.PositiveSmallIntegerField()
    reason = models.CharField(max_length=500)
    outcome = models.CharField(max_length=10, choices=AccessOutcome.choices, blank=True, default="")
    #: Who approved or declined it.
    decided_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    objects = PendingQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=["-created_at", "-id"], name="access_request_newest"),
            models.Index(fields=["tenant", "-created_at"], name="access_request_of_tenant"),
        )

    def __str__(self) -> str:
        return f"request of {self.staff_id} for access"


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


class ProposalOutcome(models.TextChoices):
    """How a proposal ended, if it did not expire."""

    CONFIRMED = "confirmed"


class ProposalQuerySet(models.QuerySet["Proposal"]):
    def confirmable(self, *, by: str) -> Self:
        """Return the open proposals of other platform admins than ``by``, an email."""
        is_admin = {"admin__is_active": True, "admin__role": PrimaryRole.ADMIN}
        return self.filter(ended_at=None, expires_at__gt=now(), **is_admin).exclude(admin__email=by)


class Proposal(Pending):
    """One effect that a change of rights would have. A second platform admin who asks for it confirms it."""

    admin = models.ForeignKey(User, on_delete=models.CASCADE, related_name="proposals")
    #: What would happen: `accounts.readers.rule.Effect`.
    effect = models.CharField(max_length=40)
    #: A tenant or an account.
    resource_id = models.UUIDField()
    #: The email of the person whose rights would change.
    person = models.CharField(max_length=320)
    #: The permissions of a grant.
    detail = models.CharField(max_length=400, blank=True, default="")
    reason = models.CharField(max_length=500, blank=True, default="")
    outcome = models.CharField(max_length=10, choices=ProposalOutcome.choices, blank=True, default="")

    objects = ProposalQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=["resource_id", "person"], name="proposal_of_resource"),
            models.Index(fields=["-created_at", "-id"], name="proposal_by_time"),
        )

    def __str__(self) -> str:
        return f"{self.effect} {self.person}"
