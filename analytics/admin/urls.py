"""Staff pages of builds, inside the namespace ``admin``."""

from __future__ import annotations

from analytics.admin import builds

_TENANT = "tenants/<uuid:tenant>/"

urlpatterns = [
    builds.BuildsPage.at(f"{_TENANT}builds/", "tenant-builds"),
    builds.QuarantinePage.at(f"{_TENANT}builds/quarantine/<slug:day>/", "tenant-quarantine"),
    builds.QuarantinedEntryPage.at(
        f"{_TENANT}builds/quarantine/entries/<int:entry>/", "tenant-quarantined-entry"
    ),
    builds.RebuildPage.at(f"{_TENANT}builds/again/", "tenant-rebuild"),
]
