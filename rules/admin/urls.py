"""Staff pages of the history, inside the namespace ``admin``."""

from __future__ import annotations

from accounts.admin.tabs import add_tab
from rules.admin.pages import history

_TENANT = "tenants/<uuid:tenant>/"

add_tab(30, "History", page="tenant-history")

urlpatterns = [
    history.HistoryPage.at(f"{_TENANT}history/", "tenant-history"),
    history.RestorePage.at(f"{_TENANT}history/<slug:kind>/<int:seq>/restore/", "tenant-restore"),
]
