"""Errors outside of DRF: a page for browsers, JSON for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.contrib import admin
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse

from tenantadmin.lib.core.errors import ApiError, BadRequest, Forbidden, InternalError, NotFound
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.request_context import current_request_id
from tenantadmin.lib.http.handler import as_api_error

if TYPE_CHECKING:
    from django.http import HttpRequest

_ADMIN: Final = "/admin/"
_TITLES: Final = {400: "This request is not valid", 403: "You may not see this", 404: "There is nothing here"}


class ErrorPage(HttpResponse):
    """An error as a page."""


def wants_page(request: HttpRequest) -> bool:
    """Return True if the caller is a browser that opens a page, or sends a form of one."""
    return "text/html" in request.headers.get("Accept", "")


def error_response(error: ApiError) -> HttpResponse:
    """Return ``error`` as JSON."""
    return HttpResponse(
        dump_json(error.body()),
        content_type="application/json",
        status=error.status,
        headers=error.headers,
    )


def answer_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    """Return ``error`` as a page, or as JSON if the caller is no browser."""
    if not wants_page(request):
        return error_response(error)
    context = {
        "title": _TITLES.get(error.status, "This did not work"),
        "error": error,
        "request_id": current_request_id(),
    }
    if error.status < 500 and request.path.startswith(_ADMIN) and admin.site.has_permission(request):
        frame = {**admin.site.each_context(request), "trail": [("Home", reverse("admin:index"))]}
        page = render_to_string("backoffice/failed.html", {**frame, **context}, request)
    else:
        # Without the database: it may be the cause.
        home = _ADMIN if request.path.startswith(_ADMIN) else settings.DASHBOARD_URL
        page = render_to_string("error.html", {**context, "home": home})
    return ErrorPage(page, status=error.status, headers=error.headers)


def answer_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """``handler404``."""
    return answer_error(request, NotFound())


def answer_forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """``handler403``."""
    return answer_error(request, Forbidden("This page is not open to you, or it does not exist."))


def answer_bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """``handler400``."""
    return answer_error(request, as_api_error(exception) or BadRequest())


def answer_failure(request: HttpRequest) -> HttpResponse:
    """``handler500``. Django has logged the traceback."""
    return answer_error(request, InternalError())


def answer_csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """``CSRF_FAILURE_VIEW``."""
    message = "The form is too old, or the browser keeps no cookies. Open the page again, and send it again."
    return answer_error(request, Forbidden(message))
