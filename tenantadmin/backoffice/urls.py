"""Addresses of the staff's pages, inside the namespace ``admin``."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from tenantadmin.backoffice.pages import builds, history, home, markers, rules, tenant

_TENANT = "tenants/<uuid:tenant>/"

urlpatterns = [
    home.HomePage.at("", "index"),
    path("records/", admin.site.admin_view(admin.site.index), name="all_records"),
    tenant.OverviewPage.at(_TENANT, "tenant"),
    tenant.PeoplePage.at(f"{_TENANT}people/", "tenant-people"),
    tenant.AccessPage.at(f"{_TENANT}people/access/", "tenant-access"),
    tenant.EndAccessPage.at(f"{_TENANT}people/access/end/", "tenant-access-end"),
    tenant.ConfigPage.at(f"{_TENANT}config/", "tenant-config"),
    rules.RulesPage.at(f"{_TENANT}rules/", "tenant-rules"),
    rules.SimpleRulePage.at(f"{_TENANT}rules/add/", "tenant-rules-add"),
    rules.TracePage.at(f"{_TENANT}rules/trace/", "tenant-rules-trace"),
    rules.DraftPage.at(f"{_TENANT}rules/drafts/<uuid:draft>/", "tenant-draft"),
    history.HistoryPage.at(f"{_TENANT}history/", "tenant-history"),
    history.RestorePage.at(f"{_TENANT}history/<slug:kind>/<int:seq>/restore/", "tenant-restore"),
    markers.MarkersPage.at(f"{_TENANT}markers/", "tenant-markers"),
    markers.InvalidatePage.at(f"{_TENANT}markers/add/", "tenant-invalidate"),
    markers.RemoveMarkerPage.at(f"{_TENANT}markers/<path:marker>/remove/", "tenant-marker-remove"),
    builds.BuildsPage.at(f"{_TENANT}builds/", "tenant-builds"),
    builds.RebuildPage.at(f"{_TENANT}builds/again/", "tenant-rebuild"),
]
