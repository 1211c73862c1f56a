"""Error classes with their status and code, and the JSON body of an error. Contract: Errors.

Any layer may raise an `ApiError`. This module needs neither Django nor DRF.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from msgspec import Meta

from tenantadmin.lib.core.request_context import current_request_id
from tenantadmin.lib.core.structs import JsonStruct, example, schema_ref


class Detail(JsonStruct, kw_only=False):
    """A place in the request, and what is wrong there."""

    component = "ErrorDetail"

    path: Annotated[str, Meta(description="JSON Pointer."), example("/rules/0/ttlSeconds")]
    code: Annotated[str, example("out-of-range")]
    message: str


class ErrorBody(JsonStruct):
    """Why the service did not do what was asked."""

    error: Annotated[str, schema_ref("ErrorCode")]
    message: Annotated[str, example("The request is not valid.")]
    details: list[Detail] | None = None
    request_id: Annotated[str, example("5c7d3c0e1b5f4b0f9a2e")]


class ApiError(Exception):
    """An error whose message is sent to the caller.

    ``details`` lists places in the request. ``headers`` adds headers. ``why`` tells the audit what the caller
    is not told.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    message: ClassVar[str] = "The service failed to answer this request."

    def __init__(
        self,
        message: str = "",
        *,
        details: Sequence[Detail] = (),
        headers: Mapping[str, str] | None = None,
        why: str = "",
    ) -> None:
        self.text = message or self.message
        self.why = why or self.text
        self.details = tuple(details)
        self.headers = dict(headers or {})
        super().__init__(self.text)

    def settle(self) -> None:
        """Do what outlives the change that the error has ended. Call it after the rollback."""

    def body(self) -> JsonStruct:
        """Return the body. An error with more members than `ErrorBody` overrides this."""
        return ErrorBody(
            error=self.code,
            message=self.text,
            details=list(self.details) or None,
            request_id=current_request_id(),
        )


class BadRequest(ApiError):
    status = 400
    code = "bad_request"
    message = "The request is malformed."


class ValidationFailed(ApiError):
    """The request can be parsed, but a value in it is not valid. ``details`` has each place."""

    status = 400
    code = "validation_failed"
    message = "The request is not valid."

    @classmethod
    def at(cls, path: str, code: str, message: str) -> Self:
        """Return the error for one place in the request."""
        return cls(details=[Detail(path, code, message)])


class InvalidJson(ApiError):
    status = 400
    code = "invalid_json"
    message = "The body is not valid JSON."


class PlanLimitExceeded(ApiError):
    status = 400
    code = "plan_limit_exceeded"
    message = "The account's plan does not allow more of these."


class Unauthorized(ApiError):
    """The operation needs credentials, but the request has none."""

    status = 401
    code = "unauthorized"
    message = "Send an access token: 'Authorization: Bearer <token>'."

    def __init__(self, message: str = "", **options: Any) -> None:
        super().__init__(message, **options)
        self.headers.setdefault("WWW-Authenticate", "Bearer")


class InvalidToken(Unauthorized):
    code = "invalid_token"
    message = "The access token is not valid."

    def __init__(self, message: str = "", **options: Any) -> None:
        super().__init__(message, **options)
        self.headers["WWW-Authenticate"] = f'Bearer error="invalid_token", error_description="{self.text}"'


class TokenExpired(InvalidToken):
    code = "token_expired"
    message = "The access token has expired. Ask POST /oauth/token for a new one."


class Forbidden(ApiError):
    status = 403
    code = "forbidden"
    message = "You may not do this."


class TosRequired(Forbidden):
    code = "tos_required"
    message = (
        "Acknowledge the active terms of service first: POST /users/{email}/tos, then refresh the token."
    )


class NotFound(ApiError):
    status = 404
    code = "not_found"
    message = "There is nothing at this address."


class MethodNotAllowed(ApiError):
    status = 405
    code = "method_not_allowed"
    message = "This method is not allowed here."


class Conflict(ApiError):
    status = 409
    code = "concurrent_change"
    message = "The document changed in the meantime. Read it again and retry."


class NotAcceptable(ApiError):
    status = 406
    code = "not_acceptable"
    message = "The answer does not exist in a type that Accept allows."


class PayloadTooLarge(ApiError):
    status = 413
    code = "payload_too_large"
    message = "The body is larger than 1 MiB (1048576 bytes)."


class RequestTimeout(ApiError):
    """The body of the request did not arrive in time."""

    status = 408
    code = "request_timeout"
    message = "The body of the request arrived too slowly. Send it again."


class RateLimited(ApiError):
    """The caller sends too many requests. ``retry_after`` is in whole seconds."""

    status = 429
    code = "rate_limited"
    message = "Too many requests. Try again later."

    def __init__(self, message: str = "", *, retry_after: int) -> None:
        headers = {"Retry-After": str(retry_after)}
        super().__init__(message, headers=headers, why="There were too many tries.")


class InternalError(ApiError):
    """The service has a fault. Every unexpected exception becomes this error."""


class ServiceBusy(ApiError):
    """The service cannot take on this request now."""

    status = 503
    code = "service_busy"
    message = "The service is busy. Try again in a moment."

    def __init__(self, message: str = "") -> None:
        super().__init__(message, headers={"Retry-After": "1"})


def error_codes() -> list[str]:
    """Return the codes of all error classes that are imported, sorted."""
    codes = set()
    pending: list[type[ApiError]] = [ApiError]
    while pending:
        kind = pending.pop()
        codes.add(kind.code)
        pending += kind.__subclasses__()
    return sorted(codes)
