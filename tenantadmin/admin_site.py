"""The admin site of platform staff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.template.response import TemplateResponse

from accounts.staff.passwords import PasswordForm

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


class StaffSite(admin.AdminSite):
    """Django's admin site under the service's name; only platform admins get in."""

    site_header = "Tenant administration"
    site_title = "Tenant administration"
    index_title = "Everything the service holds"
    site_url = "/docs"
    #: Lists are wide; the first page leads to all of them.
    enable_nav_sidebar = False
    login_form = PasswordForm

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the password form, or sign in; a try too many is a 429 that says when there is another."""
        answer: HttpResponse = super().login(request, extra_context)
        context = (answer.context_data if isinstance(answer, TemplateResponse) else None) or {}
        form = context.get("form")
        if isinstance(form, PasswordForm) and form.refusal is not None:
            answer.status_code = form.refusal.status
            for name, value in form.refusal.headers.items():
                answer[name] = value
        return answer
