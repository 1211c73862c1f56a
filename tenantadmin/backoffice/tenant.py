"""The page of one tenant: owners, plan and limits, health, access, and what was done last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from accounts.admin.accounts import read_use
from accounts.admin.base import TenantPage
from accounts.admin.names import names_of
from accounts.limited_access import current_membership
from accounts.models import AccessRequest, Fqdn, Membership
from accounts.models.tenants import TenantConfig
from analytics.advice.recommend import describe_open_recommendations
from analytics.models import Build, TenantHealth
from analytics.models.summaries import is_day
from analytics.watch.verdict import VerdictState
from analytics.words.verdict import Verdict, read_verdict
from logs.models import PendingBuild
from tenantadmin.backoffice.audit.page import ReadsAudit, describe_acts, ids_of
from tenantadmin.backoffice.audit.timeline import AuditFilter, read_audit

#: At most so many acts, and of each other list.
_MOST: Final = 10
#: The records of one request are one act.
_RECORDS: Final = 40


class TenantHomePage(ReadsAudit, TenantPage):
    """What staff must know of a tenant. All else is in the dashboard, which this page opens."""

    title = "Tenant"
    template_name = "backoffice/tenant/tenant.html"

    def read(self) -> Mapping[str, Any]:
        tenant, own = self.tenant, {"tenant_id": self.tenant.pk}
        builds = Build.objects.filter(**own)
        failed = list(builds.to_repair()[:_MOST])
        verdict = read_verdict(tenant.pk)
        members = Membership.objects.in_force().filter(**own)
        filters = AuditFilter(tenant=tenant.pk)
        entries = read_audit(filters, limit=_RECORDS).entries
        names = names_of(ids_of(entries, filters))
        return {
            "verdict": verdict,
            "failed": _beside(verdict, failed),
            "has_failed": bool(failed),
            "advice": describe_open_recommendations(tenant.pk),
            "health": TenantHealth.objects.filter(pk=tenant.pk).first(),
            "build": builds.first(),
            "pending": PendingBuild.objects.filter(**own).exclude(day=None).count(),
            "owners": Membership.objects.owners_of(tenant.pk).select_related("user")[:_MOST],
            "account_owners": tenant.account.owners.order_by("email")[:_MOST],
            "use": read_use(tenant),
            "engine": TenantConfig.objects.filter(**own).values_list("sql_engine", flat=True).first(),
            "fqdns": Fqdn.objects.filter(**own)[:_MOST],
            "members": members.count(),
            "staff": members.exclude(ends_at=None).select_related("user")[:_MOST],
            "asked": AccessRequest.objects.filter(**own).open().count(),
            "membership": current_membership(self.user, **own),
            "acts": describe_acts(self.readable(entries), names)[:_MOST],
            "names": names,
        }


def _beside(verdict: Verdict, failed: Sequence[Build]) -> Sequence[Build]:
    """Return the failed builds that ``verdict`` does not tell.

    Of a late log it tells those after the last day, but not while later days are being summarised.
    """
    last = next((row.day for row in (verdict, *verdict.more) if row.state is VerdictState.LOG_LATE), None)
    if last is None:
        return failed
    return [build for build in failed if not (is_day(build.period) and build.period > last.isoformat())]
