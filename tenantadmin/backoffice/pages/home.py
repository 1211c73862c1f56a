"""The page Home."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from accounts.admin.pages.base import PART, StaffPage
from tenantadmin.backoffice.home import find_without_owner, read_home, read_totals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accounts.admin.pages.base import Trail


class HomePage(StaffPage):
    """Everything that needs attention now."""

    title = "Home"
    template_name = "backoffice/home.html"
    parts: ClassVar[Mapping[str, str]] = {
        "totals": "backoffice/totals.html",
        "without-owner": "backoffice/without_owner.html",
    }

    def read(self) -> Mapping[str, Any]:
        if self.request.GET.get(PART) == "totals":
            return {"totals": read_totals()}
        if self.request.GET.get(PART) == "without-owner":
            return {"found": find_without_owner()}
        return {"home": read_home()}

    def trail(self) -> Trail:
        return []
