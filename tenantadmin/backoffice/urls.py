"""URLs of staff pages in the namespace ``admin``: pages for all areas, and the pages of each app."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from tenantadmin.backoffice import finding, home, system, tenant
from tenantadmin.backoffice.audit import page

urlpatterns = [
    home.HomePage.at("", "index"),
    path("records/", admin.site.admin_view(admin.site.index), name="all_records"),
    path("search/", admin.site.admin_view(finding.palette), name="search"),
    system.SystemPage.at("system/", "system"),
    page.AuditListPage.at("audit/", "audit"),
    tenant.TenantHomePage.at("tenants/<uuid:tenant>/", "tenant"),
    path("", include("accounts.admin.urls")),
    path("", include("tosapp.admin.urls")),
    path("", include("analytics.admin.urls")),
]
