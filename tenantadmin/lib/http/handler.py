"""Turn an exception into an error response: JSON for machines, a page for browsers. Contract: Errors.

If the database is away, the response is a 503 with a ``Retry-After``. An exception that is neither an
`ApiError` nor known from Django or DRF is a fault of the service. It is logged with its traceback, and the
response is a 500 that does not describe it.
"""

from __future__ import annotations

import logging
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied, SuspiciousOperation, TooManyFieldsSent
from django.http import Http404, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.views import set_rollback

from tenantadmin.lib.core.errors import (
    ApiError,
    BadRequest,
    Detail,
    Forbidden,
    InternalError,
    MethodNotAllowed,
    NotFound,
    Unauthorized,
    ValidationFailed,
)
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.request_context import current_request_id
from tenantadmin.lib.database.connections import is_database_away
from tenantadmin.lib.http.health import DatabaseUnreachable

if TYPE_CHECKING:
    from django.http import HttpRequest

#: Replacements by code for messages of DRF that name Python types or do not say what to do.
_PLAIN_MESSAGES: Final = {
    "not-a-list": "Send an array.",
    "not-a-dict": "Send a JSON object.",
    "null": "Null is not allowed here: give a value, or leave the member out if it is optional.",
}

logger = logging.getLogger(__name__)


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response:
    """Return the error response for an exception of a view (a hook of DRF)."""
    set_rollback()
    error = as_api_error(exc)
    if isinstance(error, DatabaseUnreachable):
        logger.warning("The database does not answer", exc_info=exc)
    if error is None:
        logger.error("Unhandled error in %s", type(context.get("view")).__name__, exc_info=exc)
        response = _response(InternalError())
        # Django would log it again, without its traceback.
        response._has_been_logged = True  # type: ignore[attr-defined]
        return response
    return _response(error)


def _response(error: ApiError) -> Response:
    return Response(error.body(), status=error.status, headers=error.headers)


def as_api_error(exc: BaseException) -> ApiError | None:
    """Return the `ApiError` for ``exc``, or None if it is a fault of the service."""
    if isinstance(exc, ApiError):
        return exc
    if isinstance(exc, Http404 | drf.NotFound):
        return NotFound()
    if isinstance(exc, drf.NotAuthenticated | drf.AuthenticationFailed):
        return Unauthorized()
    if isinstance(exc, PermissionDenied | drf.PermissionDenied):
        return Forbidden()
    if isinstance(exc, drf.MethodNotAllowed):
        return MethodNotAllowed()
    if isinstance(exc, drf.ValidationError):
        return ValidationFailed(details=validation_details(exc.detail))
    if is_database_away(exc):
        return DatabaseUnreachable(headers={"Retry-After": "1"})
    return _as_bad_request(exc)


def _as_bad_request(exc: BaseException) -> BadRequest | None:
    if isinstance(exc, drf.UnsupportedMediaType):
        return BadRequest("Send the body as 'Content-Type: application/json'.")
    if isinstance(exc, drf.APIException) and exc.status_code == HTTPStatus.BAD_REQUEST:
        return BadRequest(str(exc.detail))
    if isinstance(exc, TooManyFieldsSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        return BadRequest(f"The request has more than {most} query parameters or form fields.")
    if isinstance(exc, SuspiciousOperation):
        # Django answers 400, too. The exception's own message may name files of the server.
        return BadRequest()
    return None


def validation_details(detail: Any, path: str = "") -> list[Detail]:
    """Flatten DRF's nested validation errors into `Detail`s with JSON Pointers, in document order."""
    if isinstance(detail, dict):
        rows: list[Detail] = []
        for key, value in detail.items():
            member_path = path if key == "non_field_errors" else f"{path}/{_escape(str(key))}"
            rows.extend(validation_details(value, member_path))
        return rows
    if isinstance(detail, list):
        if all(isinstance(entry, str) for entry in detail):
            return [_row(path, entry) for entry in detail]
        return [
            row for index, entry in enumerate(detail) for row in validation_details(entry, f"{path}/{index}")
        ]
    return [_row(path, detail)]


def _row(path: str, entry: Any) -> Detail:
    code = str(getattr(entry, "code", "invalid")).replace("_", "-")
    return Detail(path, code, _PLAIN_MESSAGES.get(code, str(entry)))


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


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
    """``handler500``. Django has logged the exception, and is still handling it."""
    exception = sys.exc_info()[1]
    error = as_api_error(exception) if exception is not None else None
    return answer_error(request, error or InternalError())


def answer_csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """``CSRF_FAILURE_VIEW``."""
    message = "The form is too old, or the browser keeps no cookies. Open the page again, and send it again."
    return answer_error(request, Forbidden(message))
