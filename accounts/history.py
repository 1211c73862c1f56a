"""Append to the history of documents, and check what a client sends back of one. Contract: Change history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from accounts.models import Revision
from tenantadmin.lib.core.errors import Conflict, Detail, ValidationFailed
from tenantadmin.lib.core.request_context import current_reason, current_request_id

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping
    from uuid import UUID


#: Characters of a comment on a change, which ``summary.comment`` of its revision keeps.
MAX_COMMENT: Final = 500


def append_revision(
    *,
    kind: str,
    account_id: UUID,
    tenant_id: UUID | None,
    seq: int,
    action: str,
    actor: str,
    changed_at: dt.datetime,
    summary: dict[str, Any],
    document: dict[str, Any] | None,
    restored_from: int | None = None,
    comment: str = "",
) -> Revision:
    """Record one change of a document. Call it in the transaction of the change.

    ``actor`` is a normalized email. ``comment`` says why the document changes, in `MAX_COMMENT` characters.
    Without one, the reason that staff gave is the comment.
    The caller has just increased the document's version from ``seq - 1`` to ``seq`` under a row lock, so the
    numbers have no gaps.

    Raises:
        IntegrityError: the history has a revision with this ``seq`` already.
    """
    comment = comment or current_reason()[:MAX_COMMENT]
    return Revision.objects.create(
        kind=kind,
        account_id=account_id,
        tenant_id=tenant_id,
        seq=seq,
        action=action,
        user=actor,
        changed_at=changed_at,
        restored_from=restored_from,
        summary={**summary, "comment": comment} if comment else summary,
        document=document,
        request_id=current_request_id(),
    )


def require_unchanged(
    members: Mapping[str, tuple[object, object]], *, sent_seq: int | None, stored_seq: int
) -> None:
    """Refuse new values for members that cannot change.

    ``members`` maps names to the sent value (None if it was left out) and the stored value.

    Raises:
        ValidationFailed: a read-only member was sent with another value than the stored one.
        Conflict: ``seq`` was sent with another value than the stored one.
    """
    details = [
        Detail(f"/{name}", "read-only", f"'{name}' cannot be changed. Leave it out or send it as read.")
        for name, (sent, stored) in members.items()
        if sent not in {None, stored}
    ]
    if details:
        raise ValidationFailed(details=details)
    if sent_seq not in {None, stored_seq}:
        raise Conflict
