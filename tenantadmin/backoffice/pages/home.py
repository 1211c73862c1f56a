"""The page Home."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import messages
from django.http import HttpResponseRedirect
from django.urls import reverse

from accounts.admin.base import PART, StaffPage
from tenantadmin.backoffice.home import find_without_owner, read_home, read_totals
from tenantadmin.backoffice.put_away import acknowledge, bring_back, snooze

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

    from accounts.admin.base import Trail


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
        """Put a row away for the reader, or bring one back, or all."""
        if "snooze" in request.POST:
            snooze(self.user, request.POST["snooze"])
            messages.success(request, "You do not see this row for 7 days. Others still do.")
        elif "acknowledge" in request.POST:
            acknowledge(self.user, request.POST["acknowledge"])
            messages.success(request, "You do not see this row until it changes. Others still do.")
        else:
            bring_back(self.user, request.POST.get("back") or None)
        return HttpResponseRedirect(reverse("admin:index"))

    def trail(self) -> Trail:
        return []
