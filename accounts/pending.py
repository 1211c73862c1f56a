"""End what waits for an answer: invitations, and requests of staff for access. Delete old rows of them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, ClassVar, Final

from accounts.events import record_event
from accounts.models import AccessRequest, Invitation, Proposal
from accounts.models.events import EventKind
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.request_context import current_reason
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from accounts.models.querysets import PendingQuerySet

#: Invitations, requests of staff and proposals are listed this long after they would have expired.
_RETENTION: Final = dt.timedelta(days=30)
#: At most this many of a tenant are listed, those that are open first.
MAX_LISTED: Final = 200


class Ended(ApiError):
    """It can be answered no more."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "conflict"


class InvitationEnded(Ended):
    """It was accepted, declined or withdrawn, or is no longer valid."""

    message: ClassVar[str] = "The invitation has ended: it was used, declined or withdrawn, or it expired."


class AccessRequestEnded(Ended):
    """It was answered or withdrawn, has expired, or its user can have no access for a limited time."""

    message: ClassVar[str] = "The request has ended: it was answered or withdrawn, or it expired."


def end_pending(row: Invitation | AccessRequest, outcome: str, *, actor: str, **values: Any) -> None:
    """Set the outcome of what is open, and other fields, and record it. Of two transactions, one wins.

    Raises:
        InvitationEnded, AccessRequestEnded: it is no longer open.
    """
    if not row.end(outcome, **values):
        raise InvitationEnded if isinstance(row, Invitation) else AccessRequestEnded
    record_pending(row, outcome, actor=actor)


def withdraw(rows: PendingQuerySet[Any], *, actor: str) -> int:
    """End the open ones; return how many. Call it in the transaction of what ends them."""
    # Not those that are answered at the same time.
    ended = [row for row in rows.open().order_by("pk") if row.end("withdrawn")]
    for row in ended:
        record_pending(row, "withdrawn", actor=actor)
    return len(ended)


def record_pending(row: Invitation | AccessRequest, what: str, *, actor: str) -> None:
    """Record what happened to an invitation or a request: that it was made, or its outcome."""
    content: dict[str, Any]
    if isinstance(row, Invitation):
        noun, subject, reason = "invitation", row.email, ""
        content = {"invitation": str(row.pk), "role": row.role}
    else:
        # A second platform admin gives its own reason.
        noun, subject, reason = "access", row.staff.email, current_reason() or row.reason
        content = {"request": str(row.pk), "hours": row.hours}
    record_event(
        EventKind(f"{noun}.{what}"),
        actor=actor,
        subject=subject,
        tenant_id=row.tenant_id,
        after={**content, "expiresAt": format_timestamp(row.expires_at)},
        reason=reason,
    )


def delete_old_pending() -> None:
    """Delete the invitations, requests of staff and proposals that expired more than `_RETENTION` ago."""
    for model in (Invitation, AccessRequest, Proposal):
        model._default_manager.filter(expires_at__lt=now() - _RETENTION).delete()
