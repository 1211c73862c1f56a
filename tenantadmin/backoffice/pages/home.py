"""The page Home."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import messages
from django.http import HttpResponseRedirect
from django.urls import reverse

from accounts.admin.pages.base import PART, StaffPage
from tenantadmin.backoffice.home import end_snoozes, find_without_owner, read_home, read_totals, snooze

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

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
        return {"home": read_home(self.user)}

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        """Snooze a row for the reader, or show all rows again."""
        if "row" in request.POST:
            snooze(self.user, request.POST["row"])
            messages.success(request, "You do not see this row for 7 days. Others still do.")
        else:
            end_snoozes(self.user)
        return HttpResponseRedirect(reverse("admin:index"))

    def trail(self) -> Trail:
        return []
