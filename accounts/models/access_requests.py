"""Requests of staff for access to a tenant's logs, which its owners answer. Contract: Access of staff."""

from __future__ import annotations

import uuid

from django.db import models

from accounts.models.pending import Pending
from accounts.models.querysets import PendingQuerySet
from accounts.models.tenants import Tenant
from accounts.models.users import User


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
