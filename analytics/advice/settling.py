"""Settle recommendations that were taken elsewhere: as a draft, or as a price. Contract: docs/advice.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models.signals import post_delete
from django.dispatch import receiver

from accounts.events import SYSTEM
from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory
from accounts.tenants.config import read_prices
from accounts.tenants.pricing import Pricing
from analytics.advice.proposal import Kind
from analytics.models import Recommendation
from rules.models import RuleDraft
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from uuid import UUID

State = Recommendation.State


@receiver(post_delete, sender=RuleDraft)
def settle_deleted_draft(instance: RuleDraft, **_: Any) -> None:
    """Settle the recommendation of a draft in the transaction that publishes or deletes the draft."""
    settle_drafts(instance.tenant_id, draft_id=instance.pk)


def settle_drafts(tenant_id: UUID, **of: UUID) -> None:
    """Accept the recommendations whose drafts were published, and open those whose drafts were deleted.

    Web processes of earlier releases leave that to the night.
    """
    drafted = Recommendation.objects.filter(tenant_id=tenant_id, state=State.DRAFTED, **of)
    for recommendation in drafted:
        if recommendation.draft_id and RuleDraft.objects.filter(pk=recommendation.draft_id).exists():
            continue
        revision = (
            DocumentHistory(RevisionKind.RULES, tenant_id)
            .revisions()
            .filter(summary__draft__draftId=str(recommendation.draft_id))
            .first()
        )
        changes: dict[str, Any] = {"state": State.OPEN, "draft_id": None}
        if revision is not None:
            changes = {
                "state": State.ACCEPTED,
                "decided_by": revision.user,
                "decided_at": revision.changed_at,
                "accepted_seq": revision.seq,
            }
        drafted.filter(pk=recommendation.pk, version=recommendation.version).update(
            **changes, version=recommendation.version + 1
        )


def settle_suspends(tenant_id: UUID) -> None:
    """Accept the recommendation of a time until the warehouse suspends that the prices have now."""
    undecided = Recommendation.objects.filter(
        tenant_id=tenant_id, kind=Kind.AUTO_SUSPEND, state__in=Recommendation.UNDECIDED
    )
    if not undecided:
        return
    in_force = Pricing.of(read_prices(tenant_id)).on(now().date())
    for recommendation in undecided:
        if in_force.suspend_seconds == recommendation.predicted["autoSuspend"]["then"]:
            undecided.filter(pk=recommendation.pk, version=recommendation.version).update(
                state=State.ACCEPTED,
                decided_by=SYSTEM,
                decided_at=now(),
                version=recommendation.version + 1,
            )
