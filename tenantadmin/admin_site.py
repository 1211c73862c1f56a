"""The admin site: django-unfold's site with our sign-in and the staff pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import include, path
from unfold.sites import UnfoldAdminSite

from accounts.signin.staff.enrolment import NOT_INVITED, may_enrol
from accounts.signin.staff.login import StaffLoginView, confirm_sign_in
from accounts.signin.staff.sessions import assurance_of, second_factors
from tenantadmin.lib.core import formats

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.urls import URLPattern, URLResolver


class StaffSite(UnfoldAdminSite):  # type: ignore[misc]  # django-unfold is not typed
    """The admin site under the service's name. Only staff may sign in, with a second factor."""

    index_title = "All records"
    empty_value_display = formats.NONE
    #: The sidebar links to lists by task. Django's list of all models is the page "All records".
    enable_nav_sidebar = True

    def has_permission(self, request: HttpRequest) -> bool:
        if not super().has_permission(request):
            return False
        return assurance_of(request).opens_admin

    def get_urls(self) -> list[URLPattern | URLResolver]:
        return [path("", include("tenantadmin.backoffice.urls")), *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        # The colors are in admin.css. Here they would become an inline style: the content policy forbids it.
        return {**super().each_context(request), "colors": None}

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the ways to sign in, or the next step of a signed-in user."""
        if self.has_permission(request):
            return redirect("admin:index")
        if request.headers.get("HX-Request"):
            # A polled part of a page: reload the whole page, which leads here.
            return HttpResponse(headers={"HX-Refresh": "true"})
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
    """Redirect to the page that asks for the second factor, or to the page that adds the first one."""
    if not may_enrol(request):
        messages.error(request, NOT_INVITED)
        return redirect("staff-ways-in")
    if not second_factors(request.user):
        messages.warning(request, "Add a second factor. Without one, you cannot use this site.")
        return redirect("mfa_index")
    return confirm_sign_in(request, target=request.GET.get("next") or "/admin/")
