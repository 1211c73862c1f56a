"""How drf-spectacular generates the contract: names of operations, and errors that all operations share."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiResponse

from tenantadmin.http.viewsets import ApiViewSet

if TYPE_CHECKING:
    from collections.abc import Mapping

_ERROR_REF: Final = {"$ref": "#/components/schemas/Error"}
_DESCRIPTIONS: Final = {
    "400": "Invalid or malformed body or parameter.",
    "401": "Missing or invalid credentials.",
    "403": "The caller lacks permission.",
    "404": "There is no such resource.",
    "405": "The method is not allowed here.",
    "406": "No type in `Accept` is offered.",
    "409": "The stored state does not allow it, or changed in the meantime.",
    "413": "The body is over 1 MiB.",
    "429": "Too many requests; see `Retry-After`.",
    "500": "A fault of the service.",
    "502": "A provider failed.",
    "503": "Not available yet, or not configured.",
}
_ERROR_SCHEMA: Final = {
    "type": "object",
    "required": ["error", "message", "requestId"],
    "properties": {
        "error": {"type": "string", "description": "A stable code.", "example": "validation_failed"},
        "message": {"type": "string", "example": "The request is not valid."},
        "details": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["path", "code", "message"],
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "JSON Pointer.",
                        "example": "/rules/0/ttlSeconds",
                    },
                    "code": {"type": "string", "example": "out-of-range"},
                    "message": {"type": "string"},
                },
            },
        },
        "requestId": {"type": "string", "example": "5c7d3c0e1b5f4b0f9a2e"},
    },
}
_REQUEST_ID_HEADER: Final = {
    "description": "The id under which the request was answered and logged.",
    "required": True,
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
}
_RETRY_AFTER_HEADER: Final = {
    "description": "Seconds to wait before the next request.",
    "required": True,
    "schema": {"type": "integer", "minimum": 1},
}


class ContractSchema(AutoSchema):
    """Take names and tags from the viewset. Add the error statuses that every operation can return."""

    def get_operation_id(self) -> str:
        if isinstance(self.view, ApiViewSet):
            return self.view.operation_id(self.view.action)
        return str(super().get_operation_id())

    def get_summary(self) -> str | None:
        if isinstance(self.view, ApiViewSet):
            return self.view.summary(self.view.action)
        summary: str | None = super().get_summary()
        return summary

    def get_tags(self) -> list[str]:
        if isinstance(self.view, ApiViewSet):
            return [self.view.tag]
        return list(super().get_tags())

    def get_description(self) -> str:  # type: ignore[override] # as drf-spectacular's own
        # Use only the docstring of the action, not that of a base class.
        action = getattr(self.view, getattr(self.view, "action", ""), None)
        return inspect.cleandoc(getattr(action, "__doc__", None) or "")

    def get_auth(self) -> list[dict[str, Any]]:
        if isinstance(self.view, ApiViewSet) and self.view.is_public(self.view.action):
            return []
        auth: list[dict[str, Any]] = super().get_auth()
        return auth

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is not None:
            if "requestBody" in operation:
                # By default, drf-spectacular requires a body only if it has a required member.
                body = self.get_request_serializer()
                operation["requestBody"]["required"] = not getattr(body, "may_be_absent", False)
            responses = operation.setdefault("responses", {})
            for status in self._common_errors(operation):
                responses.setdefault(status, _error_response(status))
            operation["responses"] = dict(sorted(responses.items()))
        return operation

    def _common_errors(self, operation: Mapping[str, Any]) -> list[str]:
        statuses = ["400", "500"]
        if operation.get("security") not in (None, [{}]):
            statuses += ["401", "403"]
        if "{" in self.path:
            statuses.append("404")
        if self.method in {"POST", "PUT", "PATCH"}:
            statuses.append("413")
        if isinstance(self.view, ApiViewSet) and getattr(self.view, self.view.action).operation.budget:
            statuses.append("429")
        return statuses


def refusal(status: int, description: str = "") -> OpenApiResponse:
    """Return the response that a view declares for an error status: the Error body and a description."""
    return OpenApiResponse(response=_ERROR_REF, description=description or _DESCRIPTIONS[str(status)])


STALE: Final = refusal(409, "The document changed in the meantime: read it again and retry.")
NOT_MODIFIED: Final = OpenApiResponse(description="The caller's copy is the present one.")


def _error_response(status: str) -> dict[str, Any]:
    """Return the response object of an error status that every operation can return."""
    return {
        "description": _DESCRIPTIONS[status],
        "content": {"application/json": {"schema": _ERROR_REF}},
    }


def finish_contract(result: dict[str, Any], generator: Any, **_: Any) -> dict[str, Any]:  # noqa: ARG001
    """Add what belongs to all views: the Error schema, the request id header, descriptions (a hook)."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Error"] = _ERROR_SCHEMA
    for name, schema in components["schemas"].items():
        if name.endswith("Request") and "properties" in schema:
            schema.setdefault("additionalProperties", False)
    components["schemas"] = dict(sorted(components["schemas"].items()))
    components["headers"] = {"X-Request-Id": _REQUEST_ID_HEADER, "Retry-After": _RETRY_AFTER_HEADER}
    for path, operations in result["paths"].items():
        # drf-spectacular reads the methods of a viewset from a set, so their order changes from run to run.
        path_item = result["paths"][path] = {
            method: operations[method] for method in ApiViewSet.http_method_names if method in operations
        }
        for operation in path_item.values():
            for status, response in operation["responses"].items():
                response["description"] = response.get("description") or _DESCRIPTIONS.get(status, "Done.")
                headers = response.setdefault("headers", {})
                headers["X-Request-Id"] = {"$ref": "#/components/headers/X-Request-Id"}
                if status == "429":
                    headers["Retry-After"] = {"$ref": "#/components/headers/Retry-After"}
    result["servers"] = [{"url": "/"}]
    return result
