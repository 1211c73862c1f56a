"""Staff pages of the terms of service, inside the namespace ``admin``."""

from __future__ import annotations

from tosapp.admin import pages

urlpatterns = [
    pages.TermsPage.at("terms/", "terms"),
    pages.TermsEditPage.at("terms/edit/", "terms-edit"),
    pages.TermsCsvPage.at("terms/users.csv", "terms-csv"),
]
