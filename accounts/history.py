"""Append to the history of documents. Contract: Change history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from accounts.models import Revision
from tenantadmin.lib.core.request_context import current_reason, current_request_id

if TYPE_CHECKING:
    import datetime as dt
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
