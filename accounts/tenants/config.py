"""Read and write the configuration of a tenant. Contract: Tenants and configuration."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final
from uuid import UUID

from django.db import transaction
from msgspec import Meta

from accounts.diff import diff_documents, equal_values, summarize_fields
from accounts.events import record_event
from accounts.limits import Quota, limits_of, require_within, use_quota
from accounts.models import Tenant, TenantConfig
from accounts.models.billing import Plan
from accounts.models.events import EventKind
from accounts.models.history import RevisionAction, RevisionKind
from accounts.models.tenants import StaffApproval, TenantKind, tenant_name_key
from accounts.revisions import append_revision, require_unchanged
from accounts.tenants.documents import tenant_documents
from accounts.tenants.errors import TenantNotFound, database_refusals
from accounts.tenants.fqdns import FqdnChange, apply_fqdns, require_domains, require_few_held
from accounts.tenants.stamps import stamp_tenant
from tenantadmin.lib.core.errors import Conflict, Forbidden
from tenantadmin.lib.core.rendering import require_etag, strong_etag
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of, sent_as
from tenantadmin.lib.core.timestamps import Timestamp

_DEFAULT_CACHING: Final = {"cacheEnabled": True, "ttlSeconds": 86_400}
_APPROVAL: Final = {"staffApproval": str(StaffApproval.REQUIRED)}
_DEFAULT_LOGGING: Final = {"retentionDays": 400, "storeParameterValues": True}


@dataclass(frozen=True, slots=True)
class SentConfig:
    """A configuration as a caller sent it, after its shape was checked.

    ``document`` has the members that a caller may set. The other fields are the read-only members as sent; a
    member that was left out is None.
    """

    document: Mapping[str, Any]
    tenant_id: UUID | None = None
    account_id: UUID | None = None
    created_at: dt.datetime | None = None
    seq: int | None = None


class TenantConfigDocument(JsonStruct):
    """A tenant's configuration."""

    tenant_id: UUID
    account_id: UUID
    tenant_name: str
    fqdns: list[str]
    warehouse: Annotated[dict[str, Any] | None, sent_as("accounts.serializers.tenants.Warehouse")] = None
    defaults: Annotated[dict[str, Any], sent_as("accounts.serializers.tenants.Caching")]
    logging: Annotated[dict[str, Any], sent_as("accounts.serializers.tenants.Logging")]
    labels: dict[str, str]
    access: Annotated[dict[str, Any], sent_as("accounts.serializers.tenants.StaffAccess")]
    plan: Annotated[str, one_of(Plan.values)]
    created_at: Timestamp
    modified_at: Timestamp
    seq: Count
    kind: Annotated[
        str | None,
        one_of([TenantKind.ASSESSMENT.value]),
        Meta(description="Absent: a customer's. An assessment has a warehouse's own history for a log."),
    ] = None


@dataclass(frozen=True, slots=True)
class ConfigState:
    """A tenant's configuration as it is stored."""

    tenant_id: UUID
    account_id: UUID
    plan: str
    created_at: dt.datetime
    modified_at: dt.datetime
    seq: int
    document: Mapping[str, Any]
    kind: str

    @property
    def etag(self) -> str:
        return _etag(self.tenant_id, self.seq, self.plan)

    def answer(self) -> TenantConfigDocument:
        """Return the contract's TenantConfig."""
        return TenantConfigDocument.of(
            self,
            tenant_name=self.document["tenantName"],
            fqdns=self.document["fqdns"],
            warehouse=self.document.get("warehouse"),
            defaults=self.document["defaults"],
            logging=self.document["logging"],
            labels=self.document["labels"],
            access={"staffApproval": staff_approval(self.document)},
            kind=None if self.kind == TenantKind.CUSTOMER else self.kind,
        )


def complete_config(checked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document to store: the members that a caller set, and the defaults of the others."""
    return {
        "tenantName": checked["tenantName"],
        "fqdns": checked.get("fqdns", []),
        **({"warehouse": dict(checked["warehouse"])} if "warehouse" in checked else {}),
        "defaults": {**_DEFAULT_CACHING, **checked.get("defaults", {})},
        "logging": {**_DEFAULT_LOGGING, **checked.get("logging", {})},
        "labels": dict(checked.get("labels", {})),
        # The default is not stored, so that documents from before are equal.
        **({"access": _APPROVAL} if staff_approval(checked) == StaffApproval.REQUIRED else {}),
    }


def staff_approval(document: Mapping[str, Any]) -> StaffApproval:
    """Return whether a configuration lets owners approve the access of staff."""
    return StaffApproval(document.get("access", {}).get("staffApproval", StaffApproval.NOTIFY))


def _etag(tenant_id: UUID, seq: int, plan: str) -> str:
    return strong_etag("config", tenant_id, seq, plan)


def config_etag(tenant_id: UUID) -> str:
    """Return the entity tag of a live tenant's configuration without reading the document.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    row = (
        # Deleting a tenant deletes this row, so every row belongs to a live tenant.
        TenantConfig.objects.filter(pk=tenant_id).values_list("seq", "tenant__account__plan").first()
    )
    if row is None:
        raise TenantNotFound
    return _etag(tenant_id, *row)


def read_config(tenant_id: UUID) -> ConfigState:
    """Return a live tenant's configuration.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    # Deleting a tenant deletes this row, so every row belongs to a live tenant.
    config = TenantConfig.objects.select_related("tenant__account").filter(pk=tenant_id).first()
    if config is None:
        raise TenantNotFound
    return ConfigState(
        tenant_id=tenant_id,
        account_id=config.tenant.account_id,
        plan=config.tenant.account.plan,
        created_at=config.tenant.created_at,
        modified_at=config.modified_at,
        seq=config.seq,
        document=config.document,
        kind=config.tenant.kind,
    )


def per_user_tables(document: Mapping[str, Any]) -> list[str] | None:
    """Return the patterns of tables that show each user other rows; None if a configuration does not say."""
    patterns: list[str] | None = document.get("warehouse", {}).get("perUserTables")
    return patterns


def prices(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the prices of the warehouse of a configuration."""
    found: list[dict[str, Any]] = document.get("warehouse", {}).get("pricing", [])
    return found


def read_prices(tenant_id: UUID) -> list[dict[str, Any]]:
    """Return the prices of a live tenant's warehouse; none too if there is no such tenant."""
    return prices({"warehouse": read_warehouse(tenant_id)})


def read_warehouse(tenant_id: UUID) -> dict[str, Any]:
    """Return the warehouse of a live tenant's configuration; empty too if there is none."""
    warehouses = TenantConfig.objects.filter(pk=tenant_id).values_list("document__warehouse", flat=True)
    return warehouses.first() or {}


def _record_removed_tables(
    tenant_id: UUID, *, before: Mapping[str, Any], after: Mapping[str, Any], actor: str
) -> None:
    """Record that tables are not protected any more: rules may share their results from now on."""
    old, new = per_user_tables(before), per_user_tables(after)
    if set(old or ()) - set(new or ()):
        record_event(
            EventKind.PER_USER_TABLES_REMOVED,
            actor=actor,
            subject=str(tenant_id),
            tenant_id=tenant_id,
            before={"perUserTables": old},
            after={"perUserTables": new},
        )


def write_config(
    *,
    tenant_id: UUID,
    document: Any,
    parse: Callable[[Any], SentConfig],
    actor: str,
    by_owner: bool = False,
    restored_from: int | None = None,
    expected_etag: str | None = None,
    if_changed: bool = False,
    comment: str = "",
    changed_at: dt.datetime | None = None,
) -> ConfigState:
    """Replace a live tenant's configuration. PUT, restore and every other writer use this function.

    ``document`` is the body as sent; ``parse`` checks its shape. ``expected_etag`` is a value of
    ``If-Match``, or None. With ``if_changed``, a document that equals the stored one writes nothing.
    ``comment`` says why it changes, for the revision. ``changed_at`` is the time of the revision, for a
    configuration that is imported with its history. Checks the FQDNs, the immutable ``accountId``, the plan's
    limits and the unique name. Appends the revision and updates the tenant's ``modifiedAt``. An absent
    ``access`` stays. Only owners of the tenant (``by_owner``) change it: staff cannot approve for themselves.

    Raises:
        TenantNotFound: there is no such live tenant.
        Forbidden: ``access`` changes, and not by an owner.
        ValidationFailed: the document is invalid, or the stored rules share tables that it adds to
            ``perUserTables``.
        PlanLimitExceeded: it has more FQDNs than the plan allows, or released too many.
        RateLimited: the tenant stores more bytes than the plan allows in a day. Imports do not count.
        FqdnConflict, TenantNameConflict: another tenant has the FQDN or the name.
        Conflict: the document changed since it was read, or ``seq`` is stale.
    """
    stored = read_config(tenant_id)
    require_etag(stored.etag, expected=expected_etag)
    sent = parse(document)
    require_unchanged(
        {
            "tenantId": (sent.tenant_id, stored.tenant_id),
            "accountId": (sent.account_id, stored.account_id),
            "createdAt": (sent.created_at, stored.created_at),
        },
        sent_seq=sent.seq,
        stored_seq=stored.seq,
    )
    checked = complete_config({"access": stored.document.get("access", {}), **sent.document})
    if staff_approval(checked) != staff_approval(stored.document) and not by_owner:
        raise Forbidden("Only an owner of the tenant, signed in, changes 'access'.")
    if if_changed and equal_values(checked, stored.document):
        return stored
    limits = limits_of(stored.plan)
    names = checked["fqdns"]
    require_within(limits.fqdns, count=len(names), what="FQDNs per tenant", plan=stored.plan, path="/fqdns")
    if changed_at is None:
        use_quota(Quota.DOCUMENTS, tenant_id, checked)
    change = FqdnChange.between(stored.document["fqdns"], names)
    with transaction.atomic(), database_refusals():
        stamp = stamp_tenant(tenant_id)
        if stamp is None:
            raise TenantNotFound
        modified_at = changed_at or stamp
        written = TenantConfig.objects.filter(pk=tenant_id, seq=stored.seq).update(
            document=checked, seq=stored.seq + 1, modified_at=modified_at
        )
        if not written:
            raise Conflict
        Tenant.objects.filter(pk=tenant_id).update(
            name=checked["tenantName"], name_key=tenant_name_key(checked["tenantName"])
        )
        for other in tenant_documents():
            other.check_config(tenant=tenant_id, before=stored.document, after=checked)
        require_domains(names, account_id=stored.account_id, wanted=change.claimed)
        apply_fqdns(change, tenant_id=tenant_id, names=names, at=modified_at)
        if change.claimed:
            require_few_held(
                tenant_id=tenant_id, account_id=stored.account_id, plan=stored.plan, at=modified_at
            )
        _record_removed_tables(tenant_id, before=stored.document, after=checked, actor=actor)
        append_revision(
            kind=RevisionKind.CONFIG,
            account_id=stored.account_id,
            tenant_id=tenant_id,
            seq=stored.seq + 1,
            action=RevisionAction.UPDATE if restored_from is None else RevisionAction.RESTORE,
            actor=actor,
            changed_at=modified_at,
            restored_from=restored_from,
            summary=summarize_fields(diff_documents(before=stored.document, after=checked)),
            document=checked,
            comment=comment,
        )
    return replace(stored, modified_at=modified_at, seq=stored.seq + 1, document=checked)
