"""The admin site of platform staff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.contrib import admin, messages
from django.http import QueryDict
from django.shortcuts import redirect

from accounts.staff.login import StaffLoginView
from accounts.staff.sessions import has_proven_second_factor, second_factors

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


class StaffSite(admin.AdminSite):
    """Django's admin site under the service's name; only platform admins get in, with a second factor."""

    site_header = "Tenant administration"
    site_title = "Tenant administration"
    index_title = "Everything the service holds"
    site_url = "/docs"
    #: Lists are wide; the first page leads to all of them.
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        if not super().has_permission(request):
            return False
        return not settings.STAFF_SECOND_FACTOR or has_proven_second_factor(request)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the ways in, or what a signed-in user still has to do."""
        if self.has_permission(request):
            return redirect("admin:index")
        if super().has_permission(request):
            return _ask_for_second_factor(request)
        context = {
            **self.each_context(request),
            "title": "Sign in",
            "subtitle": None,
            **(extra_context or {}),
        }
        return cast("HttpResponse", StaffLoginView.as_view(extra_context=context)(request))


def _ask_for_second_factor(request: HttpRequest) -> HttpResponse:
    """Lead to the page that takes the second factor, or to the one where a first one is added."""
    if not second_factors(request.user):
        messages.warning(request, "Add a second factor: without one nobody gets further on this site.")
        return redirect("mfa_index")
    page = get_adapter().get_reauthentication_methods(request.user)[0]["url"]
    query = QueryDict(mutable=True)
    query["next"] = request.GET.get("next") or "/admin/"
    return redirect(f"{page}?{query.urlencode(safe='/')}")
