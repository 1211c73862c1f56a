"""Restore an earlier configuration. Contract: Restore rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory, read_revision
from accounts.tenants.config import ConfigState, SentConfig, write_config
from accounts.tenants.errors import FqdnConflict, TenantNameConflict, TenantNotFound
from tenantadmin.lib.core.errors import Detail, ValidationFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any
    from uuid import UUID


def revision_document(history: DocumentHistory, seq: int) -> dict[str, Any]:
    """Return the document of a revision to restore.

    Raises:
        RevisionNotFound: there is no such revision.
        TenantNotFound: the revision records the deletion of the tenant.
    """
    stored: dict[str, Any] | None = read_revision(history, seq).document
    if stored is None:
        raise TenantNotFound
    return stored


def restore_config(
    *,
    tenant_id: UUID,
    seq: int,
    parse: Callable[[Any], SentConfig],
    actor: str,
    by_owner: bool = False,
    expected_etag: str | None = None,
    comment: str = "",
) -> ConfigState:
    """Write an earlier configuration again, with the checks of a new write. Arguments: see `write_config`.

    Raises:
        RevisionNotFound: there is no such revision.
        Forbidden: ``access`` changes, and not by an owner.
        TenantNotFound: the tenant does not exist or is deleted, or the revision records its deletion.
        ValidationFailed: the configuration is not valid any more, or another tenant has its FQDN or name.
        PlanLimitExceeded: it has more FQDNs than the plan allows now.
        Conflict: the configuration changed during the restore.
    """
    document = revision_document(DocumentHistory(RevisionKind.CONFIG, tenant_id), seq)
    try:
        return write_config(
            tenant_id=tenant_id,
            document=document,
            parse=parse,
            actor=actor,
            by_owner=by_owner,
            restored_from=seq,
            expected_etag=expected_etag,
            comment=comment,
        )
    except (FqdnConflict, TenantNameConflict) as error:
        raise ValidationFailed(
            f"Revision {seq} cannot be restored: {error.text}",
            details=error.details or [Detail("/tenantName", "tenant-name-conflict", error.text)],
        ) from error
