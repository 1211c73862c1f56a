"""Staff pages of rules, markers, SQL and builds, inside the namespace ``admin``."""

from __future__ import annotations

from analytics.admin.pages import (
    builds,
    drafts,
    markers,
    rules,
    sql,
    trace,
)

_TENANT = "tenants/<uuid:tenant>/"
_DRAFT = f"{_TENANT}rules/drafts/<uuid:draft>/"

urlpatterns = [
    rules.RulesPage.at(f"{_TENANT}rules/", "tenant-rules"),
    rules.AddRulePage.at(f"{_TENANT}rules/add/", "tenant-rules-add"),
    rules.RuleFormPage.at(f"{_TENANT}rules/edit/", "tenant-rule"),
    trace.TracePage.at(f"{_TENANT}rules/trace/", "tenant-rules-trace"),
    drafts.DraftPage.at(_DRAFT, "tenant-draft"),
    drafts.RebasePage.at(f"{_DRAFT}rebase/", "tenant-draft-rebase"),
    drafts.PublishPage.at(f"{_DRAFT}publish/", "tenant-draft-publish"),
    drafts.DeletePage.at(f"{_DRAFT}delete/", "tenant-draft-delete"),
    markers.MarkersPage.at(f"{_TENANT}markers/", "tenant-markers"),
    markers.InvalidatePage.at(f"{_TENANT}markers/add/", "tenant-invalidate"),
    markers.RemoveMarkerPage.at(f"{_TENANT}markers/<path:marker>/remove/", "tenant-marker-remove"),
    sql.SqlPage.at(f"{_TENANT}sql/", "tenant-sql"),
    sql.CancelQueryPage.at(f"{_TENANT}sql/running/<int:run>/cancel/", "tenant-sql-cancel"),
    builds.BuildsPage.at(f"{_TENANT}builds/", "tenant-builds"),
    builds.QuarantinePage.at(f"{_TENANT}builds/quarantine/<slug:day>/", "tenant-quarantine"),
    builds.QuarantinedEntryPage.at(
        f"{_TENANT}builds/quarantine/entries/<int:entry>/", "tenant-quarantined-entry"
    ),
    builds.RebuildPage.at(f"{_TENANT}builds/again/", "tenant-rebuild"),
]
