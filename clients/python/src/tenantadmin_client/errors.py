"""Errors of the service, a class per kind of answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx


class ApiError(Exception):
    """The service refused a request.

    Attributes:
        status: the HTTP status.
        code: the service's stable code, such as ``validation_failed``.
        details: ``{path, code, message}`` for each place that is wrong; may be empty.
        request_id: names the request in the service's logs.
    """

    def __init__(self, response: httpx.Response) -> None:
        body = _json_object(response)
        self.status = response.status_code
        self.code = str(body.get("error", "unknown"))
        self.message = str(body.get("error_description") or body.get("message") or response.reason_phrase)
        self.details: list[dict[str, Any]] = body.get("details") or []
        self.request_id = response.headers.get("X-Request-Id", "")
        self.body = body
        super().__init__(f"{self.status} {self.code}: {self.message}")


class BadRequest(ApiError):
    """400 or another refusal of what was sent."""


class LintFailed(BadRequest):
    """Lint refused rules. ``errors`` and ``warnings`` are its findings."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response)
        self.errors: list[dict[str, Any]] = self.body.get("errors", [])
        self.warnings: list[dict[str, Any]] = self.body.get("warnings", [])


class Unauthorized(ApiError):
    """401: the token is unknown, expired or revoked."""


class Forbidden(ApiError):
    """403: the token may not do this."""


class NotFound(ApiError):
    """404."""


class Conflict(ApiError):
    """409: the document changed since it was read. Read it again, and repeat."""


class RateLimited(ApiError):
    """429, after all attempts."""


class Unavailable(ApiError):
    """5xx, after all attempts."""


def error_for(response: httpx.Response) -> ApiError:
    """Return the error that an answer of 400 or above stands for."""
    if response.status_code == 400 and "errors" in _json_object(response):
        return LintFailed(response)
    kinds = {401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 429: RateLimited}
    kind = kinds.get(response.status_code, Unavailable if response.status_code >= 500 else BadRequest)
    return kind(response)


def _json_object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
