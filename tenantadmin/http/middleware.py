"""What happens around every view: request id, body limit, errors as JSON. Contract: Errors, Limits."""

from __future__ import annotations

import io
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from django.conf import settings
from django.http import HttpResponse

from tenantadmin.core.addresses import client_address
from tenantadmin.core.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
)
from tenantadmin.core.metrics import count_request
from tenantadmin.core.rendering import dump_json
from tenantadmin.core.request_context import clear_description, set_address
from tenantadmin.core.request_ids import HEADER, begin_request
from tenantadmin.core.serving import refusal_of
from tenantadmin.http.handler import as_api_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    GetResponse = Callable[[HttpRequest], HttpResponseBase]

access_log = logging.getLogger("tenantadmin.access")

#: Characters of a path that the access log shows.
_MAX_PATH: Final = 500
_BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
_HTML_PREFIXES = ("/admin/", "/static/")


def error_response(error: ApiError) -> HttpResponse:
    """Return ``error`` as a response outside of DRF."""
    return HttpResponse(
        dump_json(error.body()),
        content_type="application/json",
        status=error.status,
        headers=error.headers,
    )


def request_id(get_response: GetResponse) -> GetResponse:
    """Give every response its ``X-Request-Id``, the caller's own if it is acceptable. Record the request."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        started = time.monotonic()
        identifier = begin_request(request.headers.get(HEADER))
        clear_description()
        set_address(partial(client_address, request))
        response = get_response(request)
        response[HEADER] = identifier
        _record(request, status=response.status_code, seconds=time.monotonic() - started)
        return response

    return middleware


def _record(request: HttpRequest, *, status: int, seconds: float) -> None:
    """Count an answered request, and write its line of the access log. Its query may hold one-time tokens."""
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


def body_limit(get_response: GetResponse) -> GetResponse:
    """Answer 413 to a body over 1 MiB before anything reads, parses or authenticates it.

    The server may have refused the body already: then its error is the answer.

    A declared length is judged without reading. A body without one (chunked) is read up to the limit and
    handed on with its true length, which WSGI would otherwise take for zero.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if refusal := refusal_of(request.META):
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
    """Give what Django itself refuses (unknown path, wrong method, a fault outside DRF) the error body."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if response.status_code < 400 or request.path.startswith(_HTML_PREFIXES):
            return response
        if response.get("Content-Type", "").startswith(("application/json", "application/problem")):
            return response
        error = _plain_error(response.status_code)
        if error is None:
            return response
        replacement = error_response(error)
        if "Allow" in response:
            replacement["Allow"] = response["Allow"]
        return replacement

    return middleware


def _plain_error(status: int) -> ApiError | None:
    for kind in (BadRequest, NotFound, MethodNotAllowed, PayloadTooLarge):
        if kind.status == status:
            return kind()
    return InternalError() if status >= 500 else None


def answer_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """``handler404``."""
    return error_response(NotFound())


def answer_bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """``handler400``."""
    return error_response(as_api_error(exception) or BadRequest())


def answer_failure(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """``handler500``. Django has logged the traceback."""
    return error_response(InternalError())
