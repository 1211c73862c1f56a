"""Changes of rights by a platform admin that wait for a second one (`accounts.readers`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from accounts.models.pending import Pending
from accounts.models.users import PrimaryRole, User
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from typing import Self


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
    #: What would happen: `accounts.readers.Effect`.
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
