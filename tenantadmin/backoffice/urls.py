"""Addresses of the staff's pages, inside the namespace ``admin``."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from tenantadmin.backoffice.pages import (
    accounts,
    audit,
    builds,
    config,
    drafts,
    engine,
    history,
    home,
    insights,
    markers,
    palette,
    people,
    rules,
    sql,
    system,
    tenant,
    terms,
    trace,
)

_TENANT = "tenants/<uuid:tenant>/"
_DRAFT = f"{_TENANT}rules/drafts/<uuid:draft>/"
_ADVICE = f"{_TENANT}insights/<uuid:recommendation>/"
_ACCOUNT = "accounts/<uuid:account>/"
_DOMAIN = f"{_ACCOUNT}domains/<str:domain>/"
_PERSON = "people/<int:person>/"

urlpatterns = [
    home.HomePage.at("", "index"),
    path("records/", admin.site.admin_view(admin.site.index), name="all_records"),
    path("search/", admin.site.admin_view(palette.palette), name="search"),
    system.SystemPage.at("system/", "system"),
    terms.TermsPage.at("terms/", "terms"),
    terms.TermsEditPage.at("terms/edit/", "terms-edit"),
    terms.TermsCsvPage.at("terms/users.csv", "terms-csv"),
    tenant.OverviewPage.at(_TENANT, "tenant"),
    people.PeoplePage.at(f"{_TENANT}people/", "tenant-people"),
    people.TenantRevokePage.at(f"{_TENANT}people/revoke/", "tenant-revoke"),
    people.MemberPage.at(f"{_TENANT}people/member/", "tenant-member"),
    tenant.AccessPage.at(f"{_TENANT}people/access/", "tenant-access"),
    tenant.EndAccessPage.at(f"{_TENANT}people/access/end/", "tenant-access-end"),
    config.ConfigPage.at(f"{_TENANT}config/", "tenant-config"),
    engine.EnginePage.at(f"{_TENANT}config/engine/", "tenant-engine"),
    rules.RulesPage.at(f"{_TENANT}rules/", "tenant-rules"),
    rules.SimpleRulePage.at(f"{_TENANT}rules/add/", "tenant-rules-add"),
    trace.TracePage.at(f"{_TENANT}rules/trace/", "tenant-rules-trace"),
    drafts.DraftPage.at(_DRAFT, "tenant-draft"),
    drafts.PublishPage.at(f"{_DRAFT}publish/", "tenant-draft-publish"),
    drafts.DeletePage.at(f"{_DRAFT}delete/", "tenant-draft-delete"),
    history.HistoryPage.at(f"{_TENANT}history/", "tenant-history"),
    history.RestorePage.at(f"{_TENANT}history/<slug:kind>/<int:seq>/restore/", "tenant-restore"),
    markers.MarkersPage.at(f"{_TENANT}markers/", "tenant-markers"),
    markers.InvalidatePage.at(f"{_TENANT}markers/add/", "tenant-invalidate"),
    markers.RemoveMarkerPage.at(f"{_TENANT}markers/<path:marker>/remove/", "tenant-marker-remove"),
    insights.AdvicePage.at(f"{_TENANT}insights/", "tenant-insights"),
    insights.AcceptPage.at(f"{_ADVICE}accept/", "tenant-advice-accept"),
    insights.DraftItPage.at(f"{_ADVICE}draft/", "tenant-advice-draft"),
    insights.DismissPage.at(f"{_ADVICE}dismiss/", "tenant-advice-dismiss"),
    insights.ReopenPage.at(f"{_ADVICE}reopen/", "tenant-advice-reopen"),
    insights.DigestsPage.at(f"{_TENANT}insights/digests/", "tenant-digests"),
    insights.ReportsPage.at(f"{_TENANT}insights/reports/", "tenant-reports"),
    insights.VerifyPage.at(f"{_TENANT}insights/verify/", "tenant-verify"),
    sql.SqlPage.at(f"{_TENANT}sql/", "tenant-sql"),
    sql.CancelQueryPage.at(f"{_TENANT}sql/running/<int:run>/cancel/", "tenant-sql-cancel"),
    builds.BuildsPage.at(f"{_TENANT}builds/", "tenant-builds"),
    builds.QuarantinePage.at(f"{_TENANT}builds/quarantine/<slug:day>/", "tenant-quarantine"),
    builds.QuarantinedEntryPage.at(
        f"{_TENANT}builds/quarantine/entries/<int:entry>/", "tenant-quarantined-entry"
    ),
    builds.RebuildPage.at(f"{_TENANT}builds/again/", "tenant-rebuild"),
    accounts.AccountPage.at(_ACCOUNT, "account"),
    accounts.ChangeAccountPage.at(f"{_ACCOUNT}change/", "account-change"),
    accounts.CheckDomainPage.at(f"{_DOMAIN}check/", "domain-check"),
    accounts.VerifyDomainPage.at(f"{_DOMAIN}verify/", "domain-verify"),
    accounts.FqdnPage.at("fqdns/", "fqdns"),
    people.ReviewPage.at("people/", "people"),
    people.ReviewRevokePage.at("people/revoke/", "people-revoke"),
    people.PersonOfPage.at("people/of/", "person-of"),
    people.PersonPage.at(_PERSON, "person"),
    people.PersonRevokePage.at(f"{_PERSON}revoke/", "person-revoke"),
    people.OffboardPage.at(f"{_PERSON}offboard/", "person-offboard"),
    audit.AuditListPage.at("audit/", "audit"),
]
