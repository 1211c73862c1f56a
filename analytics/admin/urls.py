"""Staff pages of insights and builds, inside the namespace ``admin``."""

from __future__ import annotations

from analytics.admin.pages import (
    builds,
    insights,
    tenant,
)

_TENANT = "tenants/<uuid:tenant>/"
_ADVICE = f"{_TENANT}insights/<uuid:recommendation>/"

urlpatterns = [
    tenant.OverviewPage.at(_TENANT, "tenant"),
    insights.AdvicePage.at(f"{_TENANT}insights/", "tenant-insights"),
    insights.AcceptPage.at(f"{_ADVICE}accept/", "tenant-advice-accept"),
    insights.DraftItPage.at(f"{_ADVICE}draft/", "tenant-advice-draft"),
    insights.DismissPage.at(f"{_ADVICE}dismiss/", "tenant-advice-dismiss"),
    insights.ReopenPage.at(f"{_ADVICE}reopen/", "tenant-advice-reopen"),
    insights.DigestsPage.at(f"{_TENANT}insights/digests/", "tenant-digests"),
    insights.ReportsPage.at(f"{_TENANT}insights/reports/", "tenant-reports"),
    insights.VerifyPage.at(f"{_TENANT}insights/verify/", "tenant-verify"),
    builds.BuildsPage.at(f"{_TENANT}builds/", "tenant-builds"),
    builds.QuarantinePage.at(f"{_TENANT}builds/quarantine/<slug:day>/", "tenant-quarantine"),
    builds.QuarantinedEntryPage.at(
        f"{_TENANT}builds/quarantine/entries/<int:entry>/", "tenant-quarantined-entry"
    ),
    builds.RebuildPage.at(f"{_TENANT}builds/again/", "tenant-rebuild"),
]
