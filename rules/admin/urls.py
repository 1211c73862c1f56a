"""The staff page of the history, inside the namespace ``admin``."""

from __future__ import annotations

from rules.admin.pages import history

_TENANT = "tenants/<uuid:tenant>/"

urlpatterns = [
    history.HistoryPage.at(f"{_TENANT}history/", "tenant-history"),
]
