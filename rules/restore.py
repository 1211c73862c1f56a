"""Restore an earlier ruleset. Contract: Restore rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory
from accounts.tenants.lifecycle import revision_document
from rules.write import write_ruleset

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from rules.ruleset import RulesetState


def restore_ruleset(
    *,
    tenant_id: UUID,
    seq: int,
    actor: str,
    confirm_deletes: Collection[str] = (),
    comment: str = "",
    expected_etag: str | None = None,
) -> RulesetState:
    """Write an earlier ruleset again as a new revision, with a new cache-bust token.

    Raises:
        RevisionNotFound, TenantNotFound: there is no such revision or live tenant.
        RulesetRejected, ValidationFailed, PlanLimitExceeded: lint or the plan no longer allows the ruleset.
        Conflict: the ruleset changed during the restore.
    """
    return write_ruleset(
        tenant_id=tenant_id,
        document=revision_document(DocumentHistory(RevisionKind.RULES, tenant_id), seq),
        actor=actor,
        restored_from=seq,
        confirm_deletes=confirm_deletes,
        comment=comment,
        expected_etag=expected_etag,
    )
