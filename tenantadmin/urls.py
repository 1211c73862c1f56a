"""All URLs of the service. Contract: Endpoints."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from accounts.routes import url_patterns
from tenantadmin.views import ContractViewSet, DocsView, show_dashboard, show_guide

urlpatterns = [
    *url_patterns(ContractViewSet),
    path("docs", DocsView.as_view(url_name="contract", url_self="/docs"), name="docs"),
    path("docs/guides/<slug:name>", show_guide, name="guide"),
    # Also without the slash, so that tokens in the query are not redirected.
    path("dashboard", show_dashboard),
    path("dashboard/", show_dashboard, name="dashboard"),
    path("admin/", include("accounts.signin.staff.urls")),
    path("admin/", admin.site.urls),
    path("", include("rules.urls")),
    path("", include("accounts.urls")),
    path("", include("tosapp.urls")),
    path("", include("logs.urls")),
    path("", include("analytics.urls")),
]

handler400 = "tenantadmin.lib.http.handler.answer_bad_request"
handler403 = "tenantadmin.lib.http.handler.answer_forbidden"
handler404 = "tenantadmin.lib.http.handler.answer_not_found"
handler500 = "tenantadmin.lib.http.handler.answer_failure"
