"""Create, delete and restore tenants, and earlier configurations. Contract: Tenants, Restore rules.

``POST /config/tenants``, the first sign-in and commands all use `create_tenant`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

from accounts.diff import diff_documents, summarize_fields
from accounts.events import SYSTEM, record_event
from accounts.limits import limits_of, require_within
from accounts.models import Account, Tenant, TenantConfig, User
from accounts.models.events import EventKind
from accounts.models.history import RevisionAction, RevisionKind
from accounts.models.tenants import TenantKind, tenant_name_key
from accounts.models.users import MembershipRole
from accounts.readers.grants import RemoveTenants
from accounts.readers.memberships import SetMembership
from accounts.readers.rule import Author, change_readers
from accounts.revisions import DocumentHistory, append_revision, read_last_document, read_revision
from accounts.tenants.config import ConfigState, SentConfig, complete_config, read_config, write_config
from accounts.tenants.documents import tenant_documents
from accounts.tenants.errors import (
    AccountNotFound,
    FqdnConflict,
    TenantNameConflict,
    TenantNotDeleted,
    TenantNotFound,
    database_refusals,
)
from accounts.tenants.fqdns import FqdnChange, apply_fqdns, release_fqdns, require_domains, require_few_held
from accounts.tenants.names import draw_name
from accounts.tenants.stamps import new_stamp, stamp_tenant
from tenantadmin.lib.core.errors import Detail, ValidationFailed
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from accounts.access.principal import Principal


#: How often an address is drawn for a new tenant, where others have the drawn one.
_ADDRESS_DRAWS: Final = 5


def create_tenant(
    *,
    account_id: UUID,
    document: Mapping[str, Any],
    actor: str,
    owner: User | None = None,
    created_at: dt.datetime | None = None,
    kind: str = TenantKind.CUSTOMER,
) -> ConfigState:
    """Create a tenant with both its documents; ``owner`` becomes its first member.

    ``document`` has the members of a TenantConfig that a caller may set, with its shape already checked;
    ``{"tenantName": …}`` is enough. ``created_at`` is for a tenant that comes with its past; pollers of the
    manifest still see it as new. Opens its own transaction, or joins the caller's.

    Raises:
        ValidationFailed: a name of ``fqdns`` is outside the account's domains.
        PlanLimitExceeded: more tenants or FQDNs than the account's plan allows.
        AccountNotFound: there is no such account.
        FqdnConflict, TenantNameConflict: another tenant has the FQDN or the name.
    """
    checked = complete_config(document)
    names = checked["fqdns"]
    with transaction.atomic(), database_refusals():
        # Lock the account, so that two requests at once cannot exceed the plan's limit of tenants.
        account = Account.objects.live().select_for_update(no_key=True).filter(pk=account_id).first()
        if account is None:
            raise AccountNotFound
        if kind == TenantKind.CUSTOMER:
            _require_plan_allows(account, fqdns=len(names))
        stamp = new_stamp(Tenant, "modified_at")
        created_at = created_at or stamp
        tenant = Tenant.objects.create(
            account=account,
            name=checked["tenantName"],
            name_key=tenant_name_key(checked["tenantName"]),
            created_at=created_at,
            modified_at=stamp,
            kind=kind,
        )
        TenantConfig.objects.create(tenant=tenant, document=checked, modified_at=created_at)
        change = FqdnChange.between((), names)
        require_domains(names, account_id=account_id, wanted=change.claimed)
        apply_fqdns(change, tenant_id=tenant.pk, names=names, at=created_at)
        if names:
            require_few_held(tenant_id=tenant.pk, account_id=account_id, plan=account.plan, at=stamp)
        append_revision(
            kind=RevisionKind.CONFIG,
            account_id=account_id,
            tenant_id=tenant.pk,
            seq=0,
            action=RevisionAction.CREATE,
            actor=actor,
            changed_at=created_at,
            summary=summarize_fields(diff_documents(before={}, after=checked)),
            document=checked,
        )
        for stored in tenant_documents():
            stored.create(tenant=tenant, actor=actor, at=created_at)
        if owner is not None:
            change_readers(Author(actor), SetMembership(owner, tenant.pk, MembershipRole.OWNER))
    return ConfigState(
        tenant_id=tenant.pk,
        account_id=account_id,
        plan=account.plan,
        created_at=created_at,
        modified_at=created_at,
        seq=0,
        document=checked,
        kind=kind,
    )


def create_tenant_with_address(
    *, account_id: UUID, name: str, actor: str, owner: User | None = None
) -> ConfigState:
    """Create a tenant with a random address under the first platform domain, as `create_tenant` does.

    Raises:
        PlanLimitExceeded, AccountNotFound, TenantNameConflict: as `create_tenant`.
    """
    document: dict[str, Any] = {"tenantName": name}
    for attempt in range(_ADDRESS_DRAWS + 1):
        # Without a free address the tenant has none, and its owner chooses one.
        has_address = bool(settings.PLATFORM_DOMAINS) and attempt < _ADDRESS_DRAWS
        fqdns = {"fqdns": [draw_name(settings.PLATFORM_DOMAINS[0])]} if has_address else {}
        with contextlib.suppress(FqdnConflict), transaction.atomic():
            return create_tenant(
                account_id=account_id, document={**document, **fqdns}, actor=actor, owner=owner
            )
    raise AssertionError("A tenant without an address conflicts with none.")


def create_tenant_for(principal: Principal, *, account_id: UUID, document: Mapping[str, Any]) -> ConfigState:
    """Create a tenant for a caller, who becomes its owner unless it is a platform admin.

    Raises:
        As `create_tenant`.
    """
    owner = None if principal.rights.is_platform_admin else User.objects.get(pk=principal.rights.user_id)
    return create_tenant(account_id=account_id, document=document, actor=principal.email, owner=owner)


def _require_plan_allows(account: Account, *, fqdns: int) -> None:
    limits = limits_of(account.plan)
    if limits.tenants is not None:
        live = account.tenants.live().customers().count()
        require_within(limits.tenants, count=live + 1, what="tenants", plan=account.plan, path="/accountId")
    require_within(limits.fqdns, count=fqdns, what="FQDNs per tenant", plan=account.plan, path="/fqdns")


def delete_tenant(*, tenant_id: UUID, actor: str) -> int:
    """Turn a live tenant into a tombstone; return how many documents were deleted (``deletedFiles``).

    Its host names become tombstones too; history, logs, summaries and memberships stay. Of an assessment,
    only the history stays.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    with transaction.atomic():
        deleted_at = stamp_tenant(tenant_id)
        if deleted_at is None:
            raise TenantNotFound
        tenant = Tenant.objects.get(pk=tenant_id)
        config = TenantConfig.objects.get(pk=tenant_id)
        config.delete()
        append_revision(
            kind=RevisionKind.CONFIG,
            account_id=tenant.account_id,
            tenant_id=tenant_id,
            seq=config.seq + 1,
            action=RevisionAction.DELETE,
            actor=actor,
            changed_at=deleted_at,
            summary=summarize_fields(()),
            document=None,
        )
        documents = tenant_documents()
        for stored in documents:
            stored.delete(tenant=tenant, actor=actor, at=deleted_at)
        release_fqdns(tenant_id=tenant_id, names=None, at=deleted_at)
        if tenant.kind == TenantKind.ASSESSMENT:
            _remove_at_once(tenant_id)
        else:
            Tenant.objects.filter(pk=tenant_id).update(deleted_at=deleted_at)
    return 1 + len(documents)


def _remove_at_once(tenant_id: UUID) -> None:
    """Remove the row of an assessment, and its data when the transaction commits.

    If the process ends before that, a job removes the data.
    """
    change_readers(Author(SYSTEM), RemoveTenants([tenant_id]))
    remove = import_string(settings.ASSESSMENT_DATA)
    transaction.on_commit(lambda: remove(tenant_id), robust=True)


def restore_tenant(*, tenant_id: UUID, actor: str) -> ConfigState:
    """Make a deleted tenant live again, with the documents and host names that it had.

    Memberships and grants stayed. The documents are written as they were, even if checks have become stricter
    since. Markers, cache metadata and drafts of before count no more, because the cache-bust is new.

    Raises:
        TenantNotFound: there is no such tenant, or its time to be restored is over.
        TenantNotDeleted: the tenant is live.
        AccountNotFound: its account is deleted too.
        PlanLimitExceeded: more tenants or FQDNs than the account's plan allows.
        ValidationFailed: the account has lost the domain of an FQDN.
        FqdnConflict, TenantNameConflict: another tenant has the FQDN or the name now.
    """
    with transaction.atomic(), database_refusals():
        # As in `create_tenant`: the account is locked first, then the tenant.
        account = (
            Account.objects.live()
            .select_for_update(no_key=True, of=("self",))
            .filter(tenants=tenant_id)
            .first()
        )
        tenant = Tenant.objects.select_for_update().filter(pk=tenant_id).first()
        if tenant is None:
            raise TenantNotFound
        if tenant.deleted_at is None:
            raise TenantNotDeleted
        if tenant.deleted_at <= now() - settings.TOMBSTONE_LIFETIME:
            raise TenantNotFound
        if account is None:
            raise AccountNotFound
        seq, document = read_last_document(DocumentHistory(RevisionKind.CONFIG, tenant_id))
        names = document["fqdns"]
        _require_plan_allows(account, fqdns=len(names))
        Tenant.objects.filter(pk=tenant_id).update(deleted_at=None)
        restored_at = stamp_tenant(tenant_id)
        if restored_at is None:
            raise TenantNotFound
        require_domains(names, account_id=account.pk, wanted=names)
        apply_fqdns(FqdnChange.between((), names), tenant_id=tenant_id, names=names, at=restored_at)
        config = TenantConfig.objects.create(
            tenant=tenant, document=document, seq=seq + 2, modified_at=restored_at
        )
        append_revision(
            kind=RevisionKind.CONFIG,
            account_id=account.pk,
            tenant_id=tenant_id,
            seq=config.seq,
            action=RevisionAction.RESTORE,
            actor=actor,
            changed_at=restored_at,
            restored_from=seq,
            summary=summarize_fields(diff_documents(before={}, after=document)),
            document=document,
        )
        for stored in tenant_documents():
            stored.restore(tenant=tenant, actor=actor, at=restored_at)
        record_event(
            EventKind.TENANT_RESTORED,
            actor=actor,
            subject=str(tenant_id),
            tenant_id=tenant_id,
            account_id=account.pk,
            before={"deletedAt": format_timestamp(tenant.deleted_at)},
        )
    return read_config(tenant_id)


def remove_old_tombstones() -> int:
    """Remove tombstones of tenants that are older than their lifetime; return how many.

    Memberships and grants are deleted with the tenant; the history stays. It is safe to kill this function
    and run it again. Removes at most 1000 tombstones per call.
    """
    before = now() - settings.TOMBSTONE_LIFETIME
    with transaction.atomic():
        # A tenant that is being restored is locked, and is live when the next call comes.
        rows = Tenant.objects.select_for_update(skip_locked=True).filter(deleted_at__lte=before)
        old = list(rows.values_list("pk", flat=True)[:1000])
        change_readers(Author(SYSTEM), RemoveTenants(old))
    return len(old)


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
