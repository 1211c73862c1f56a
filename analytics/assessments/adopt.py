"""Turn an assessment into a customer's tenant, which keeps rules and prices, not the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction

from accounts.events import record_event
from accounts.models import Account, Tenant
from accounts.models.events import EventKind
from accounts.tenants.config import read_config
from accounts.tenants.errors import AccountNotFound
from accounts.tenants.lifecycle import create_tenant_for, delete_tenant
from analytics.assessments.report import NoAssessment
from analytics.models import Assessment
from rules.drafts import create_draft
from rules.ruleset import read_ruleset
from rules.write import write_ruleset

if TYPE_CHECKING:
    from accounts.access.principal import Principal
    from accounts.tenants.config import ConfigState

_DRAFT: Final = "Found by the assessment"


def find_account(tenant_id: UUID) -> UUID:
    """Return the account of an assessment.

    Raises:
        NoAssessment: the tenant is a customer's, or does not exist.
    """
    account = Tenant.objects.live().assessments().filter(pk=tenant_id).values_list("account_id", flat=True)
    found: UUID | None = account.first()
    if found is None:
        raise NoAssessment
    return found


def adopt_assessment(
    principal: Principal, *, tenant_id: UUID, account_id: UUID, name: str | None = None
) -> ConfigState:
    """Create a customer's tenant in an account, and delete the assessment with its log.

    The new tenant gets the configuration and the published rules. What the report found beyond them becomes
    a draft. The caller becomes its owner, unless it is a platform admin.

    Args:
        name: of the tenant; by default the name of the assessment.

    Raises:
        NoAssessment: the tenant is a customer's, or does not exist.
        PlanLimitExceeded, AccountNotFound, TenantNameConflict: as `create_tenant`.
    """
    with transaction.atomic():
        # The account before the tenant, as everywhere.
        if not Account.objects.live().select_for_update(no_key=True).filter(pk=account_id).exists():
            raise AccountNotFound
        rows = Tenant.objects.live().assessments().select_for_update()
        if not rows.filter(pk=tenant_id).exists():
            raise NoAssessment
        document = dict(read_config(tenant_id).document)
        published = list(read_ruleset(tenant_id).rules)
        report = Assessment.objects.filter(pk=tenant_id).values_list("report", flat=True).first() or {}
        # First, so that the new tenant may have its name.
        delete_tenant(tenant_id=tenant_id, actor=principal.email)
        created = create_tenant_for(
            principal,
            account_id=account_id,
            document={**document, "tenantName": name or document["tenantName"]},
        )
        if published:
            write_ruleset(
                tenant_id=created.tenant_id,
                document={"rules": published},
                actor=principal.email,
                comment=f"Of the assessment {tenant_id}",
            )
        if report.get("rules", published) != published:
            create_draft(
                tenant_id=created.tenant_id,
                document={"name": _DRAFT, "rules": report["rules"]},
                actor=principal.email,
            )
        record_event(
            EventKind.TENANT_ADOPTED,
            actor=principal.email,
            subject=str(created.tenant_id),
            tenant_id=created.tenant_id,
            account_id=account_id,
            before={"assessment": str(tenant_id)},
        )
    return created
