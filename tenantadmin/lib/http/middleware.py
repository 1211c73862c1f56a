"""Middleware around every view: request id, health checks, headers, body limit, errors as JSON.

Contract: Errors, Limits. The setting ``MIDDLEWARE`` has the order.
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpResponse
from django.middleware.gzip import GZipMiddleware
from django.utils.deprecation import MiddlewareMixin

from tenantadmin.lib.core.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
)
from tenantadmin.lib.core.metrics import count_request
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.request_context import (
    REQUEST_ID_HEADER,
    begin_request,
    clear_description,
    client_address,
    set_address,
)
from tenantadmin.lib.core.serving import REFUSAL_KEY
from tenantadmin.lib.http.handler import ErrorPage, answer_error, error_response
from tenantadmin.lib.http.health import DatabaseUnreachable, readiness

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    GetResponse = Callable[[HttpRequest], HttpResponseBase]

access_log = logging.getLogger("tenantadmin.access")

#: Characters of a path that the access log shows.
_MAX_PATH: Final = 500
_BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
_HTML_PREFIXES = ("/admin/", "/static/")
#: Paths with a session. Identity providers redirect staff to the second, which is also an API operation.
_SESSION_PREFIXES: Final = ("/admin/", "/auth/callback", "/auth/step-up")
#: Browser features that no page needs are off. Only pages of this service may use passkeys.
_PERMISSIONS: Final = ", ".join(
    [
        *(
            f"{feature}=()"
            for feature in (
                *("accelerometer", "autoplay", "camera", "display-capture", "geolocation"),
                *("gyroscope", "hid", "magnetometer", "microphone", "midi", "payment", "serial", "usb"),
            )
        ),
        *(f"publickey-credentials-{act}=(self)" for act in ("create", "get")),
    ]
)


def request_id(get_response: GetResponse) -> GetResponse:
    """Give every response its ``X-Request-Id``, the caller's own if it is acceptable. Record the request."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        started = time.monotonic()
        identifier = begin_request(request.headers.get(REQUEST_ID_HEADER))
        clear_description()
        set_address(partial(client_address, request))
        response = get_response(request)
        response[REQUEST_ID_HEADER] = identifier
        _record(request, status=response.status_code, seconds=time.monotonic() - started)
        return response

    return middleware


def _record(request: HttpRequest, *, status: int, seconds: float) -> None:
    """Count a request, and write it to the access log without its query, which may hold one-time tokens."""
    method = request.method or ""
    match = request.resolver_match
    count_request(
        method=method, route=(match.view_name if match else "") or "-", status=status, seconds=seconds
    )
    if settings.ACCESS_LOG and not request.path_info.startswith("/health"):
        path = quote(request.path[:_MAX_PATH])
        access_log.info(
            "%s %s %d",
            method,
            path,
            status,
            extra={"method": method, "path": path, "status": status, "durationMs": round(seconds * 1000)},
        )


def health(get_response: GetResponse) -> GetResponse:
    """Answer health checks before all other checks, because probes send any ``Host`` and no token.

    ``GET /health`` checks only that the process answers. ``GET /health/ready`` answers 503 if the database
    cannot be reached, and names other servers that cannot.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if request.path_info not in {"/health", "/health/ready"} or request.method not in {"GET", "HEAD"}:
            return get_response(request)
        try:
            status = readiness.describe() if request.path_info == "/health/ready" else {"status": "ok"}
        except DatabaseUnreachable as error:
            response = error_response(error)
        else:
            response = HttpResponse(dump_json(status), content_type="application/json")
        response["Cache-Control"] = "no-store"
        # Django's middleware that sets it runs after this one.
        response["Content-Length"] = str(len(response.content))
        return response

    return middleware


def refuse_nul(get_response: GetResponse) -> GetResponse:
    """Answer 404 to a path with a NUL byte, which no name in the database can have: PostgreSQL refuses it."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        return error_response(NotFound()) if "\0" in request.path_info else get_response(request)

    return middleware


def security_headers(get_response: GetResponse) -> GetResponse:
    """Add ``Cross-Origin-Resource-Policy`` to every response, and the other headers to HTML pages.

    The content policy is the setting `CONTENT_SECURITY_POLICY` of django-csp, or the page's own; pages of the
    admin site add `STAFF_SECURITY_POLICY`. Django's `SecurityMiddleware` adds HSTS, ``nosniff``,
    ``Referrer-Policy`` and ``Cross-Origin-Opener-Policy``.
    """
    # Call `process_response` directly: the full middleware costs 15 µs per request.
    policy = CSPMiddleware(get_response)

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers["Cross-Origin-Embedder-Policy"] = "require-corp"
            response.headers["Permissions-Policy"] = _PERMISSIONS
            if request.path.startswith("/admin/"):
                response._csp_update = settings.STAFF_SECURITY_POLICY  # type: ignore[attr-defined]
            policy.process_response(request, response)
        return response

    return middleware


def body_limit(get_response: GetResponse) -> GetResponse:
    """Answer 413 to a body over 1 MiB before anything reads, parses or authenticates it.

    If the server has already refused the body, the response is its error.

    A declared length is checked without reading. A body without one (chunked) is read up to the limit and
    passed on with its true length, because WSGI would otherwise assume zero.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if refusal := request.META.get(REFUSAL_KEY):
            return error_response(refusal)
        if request.method not in _BODY_METHODS:
            return get_response(request)
        declared = request.META.get("CONTENT_LENGTH") or ""
        if declared and not (declared.isascii() and declared.isdigit()):
            return error_response(BadRequest("Content-Length is not a number."))
        if declared and int(declared) > settings.MAX_BODY_BYTES:
            return error_response(PayloadTooLarge())
        if not declared and request.META.get("wsgi.input_terminated"):
            body = _read_at_most(request.META["wsgi.input"], settings.MAX_BODY_BYTES + 1)
            if len(body) > settings.MAX_BODY_BYTES:
                return error_response(PayloadTooLarge())
            request.META["CONTENT_LENGTH"] = str(len(body))
            request.META["wsgi.input"] = request._stream = io.BytesIO(body)
        return get_response(request)

    return middleware


def _read_at_most(stream: io.BufferedIOBase, size: int) -> bytes:
    """Read ``size`` bytes or to the end: a server may return fewer bytes than asked for per call."""
    chunks = []
    while size > 0 and (chunk := stream.read(size)):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def json_errors(get_response: GetResponse) -> GetResponse:
    """Answer for Django itself: unknown path, wrong method, fault outside DRF. Browsers get a page."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if response.status_code < 400 or request.path.startswith(_HTML_PREFIXES):
            return response
        if isinstance(response, ErrorPage):
            return response
        if response.get("Content-Type", "").startswith(("application/json", "application/problem")):
            return response
        error = _plain_error(response.status_code)
        if error is None:
            return response
        replacement = answer_error(request, error)
        if "Allow" in response:
            replacement["Allow"] = response["Allow"]
        return replacement

    return middleware


def _plain_error(status: int) -> ApiError | None:
    for kind in (BadRequest, NotFound, MethodNotAllowed, PayloadTooLarge):
        if kind.status == status:
            return kind()
    return InternalError() if status >= 500 else None


class ForPages(MiddlewareMixin):
    """Base of Django's middleware that only pages with a session need. Other paths skip it.

    REST requests carry a token and have no session. Without this middleware they take an eighth less time.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(_SESSION_PREFIXES):
            return super().__call__(request)  # type: ignore[return-value]  # not asynchronous
        return self.get_response(request)  # type: ignore[return-value]


def compress_static(get_response: GetResponse) -> GetResponse:
    """Compress static text on the way. In production, collectstatic has compressed it."""
    compress = cast("GetResponse", GZipMiddleware(get_response))

    def respond(request: HttpRequest) -> HttpResponseBase:
        is_text = request.path.startswith(settings.STATIC_URL) and request.path.endswith((".css", ".js"))
        return compress(request) if is_text else get_response(request)

    return respond


class PageCompression(ForPages, GZipMiddleware):
    """`GZipMiddleware` for pages. It pads answers, and Django masks tokens, so lengths give none away."""


class PageSessions(ForPages, SessionMiddleware):
    """`SessionMiddleware` for pages."""


class PageUsers(ForPages, AuthenticationMiddleware):
    """`AuthenticationMiddleware` for pages."""


class PageMessages(ForPages, MessageMiddleware):
    """`MessageMiddleware` for pages."""
