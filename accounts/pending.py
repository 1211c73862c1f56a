"""End what waits for an answer: invitations, by their answer or by what becomes of their users; old rows."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, ClassVar, Final

from accounts.events import record_event
from accounts.models import AccessRequest, Invitation, Proposal
from accounts.models.events import EventKind
from accounts.models.pending import InvitationOutcome
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from accounts.models.querysets import PendingQuerySet

#: Invitations, requests of staff and proposals are listed this long after they would have expired.
_RETENTION: Final = dt.timedelta(days=30)
#: At most this many of a tenant are listed, those that are open first.
MAX_LISTED: Final = 200
_EVENTS: Final = {
    InvitationOutcome.ACCEPTED: EventKind.INVITATION_ACCEPTED,
    InvitationOutcome.DECLINED: EventKind.INVITATION_DECLINED,
    InvitationOutcome.WITHDRAWN: EventKind.INVITATION_WITHDRAWN,
}


class InvitationEnded(ApiError):
    """It was accepted, declined or withdrawn, or is no longer valid."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "conflict"
    message: ClassVar[str] = "The invitation has ended: it was used, declined or withdrawn, or it expired."


def end_invitation(invitation: Invitation, outcome: InvitationOutcome, *, actor: str) -> None:
    """End an open invitation. Of two transactions that do, one wins.

    Raises:
        InvitationEnded: it is no longer open.
    """
    if not invitation.end(outcome):
        raise InvitationEnded
    record_invitation(_EVENTS[outcome], invitation, actor=actor)


def record_invitation(kind: EventKind, invitation: Invitation, *, actor: str) -> None:
    """Record what happened to an invitation."""
    record_event(
        kind,
        actor=actor,
        subject=invitation.email,
        tenant_id=invitation.tenant_id,
        after={
            "invitation": str(invitation.pk),
            "role": invitation.role,
            "expiresAt": format_timestamp(invitation.expires_at),
        },
    )


def withdraw_invitations(invitations: PendingQuerySet[Invitation], *, actor: str) -> None:
    """End the open ones. Call it in the transaction of what ends them."""
    for invitation in invitations.open().order_by("pk"):
        # Not one that was answered at the same time.
        if invitation.end(InvitationOutcome.WITHDRAWN):
            record_invitation(EventKind.INVITATION_WITHDRAWN, invitation, actor=actor)


def delete_old_pending() -> None:
    """Delete the invitations, requests of staff and proposals that expired more than `_RETENTION` ago."""
    for model in (Invitation, AccessRequest, Proposal):
        model._default_manager.filter(expires_at__lt=now() - _RETENTION).delete()
