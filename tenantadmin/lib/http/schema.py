"""Description of an operation by drf-spectacular: its names, and the errors of all operations.

`tenantadmin.lib.http.finishing` changes the contract as a whole.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiResponse

from tenantadmin.lib.core.errors import ErrorBody
from tenantadmin.lib.http.structs import component_name
from tenantadmin.lib.http.viewsets import ApiViewSet

if TYPE_CHECKING:
    from collections.abc import Mapping

ERROR_REF: Final = {"$ref": "#/components/schemas/Error"}
DESCRIPTIONS: Final = {
    "400": "Invalid or malformed body or parameter.",
    "401": "Missing or invalid credentials.",
    "403": "The caller lacks permission.",
    "404": "There is no such resource.",
    "405": "The method is not allowed here.",
    "406": "No type in `Accept` is offered.",
    "408": "The body did not arrive in time.",
    "409": "The stored state does not allow it, or changed in the meantime.",
    "413": "The body is over 1 MiB.",
    "429": "Too many requests; see `Retry-After`.",
    "500": "A fault of the service.",
    "502": "A provider failed.",
    "503": "Not available yet, or not configured; see `Retry-After`, if it is there.",
}
#: Errors that an operation can return, and that the specification does not declare.
_UNDECLARED: Final = {("GET", "/config/tenants/{tenant}"): frozenset({"404", "500"})}


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
        # Use only the docstring of the action, not the docstring of a base class.
        action = getattr(self.view, getattr(self.view, "action", ""), None)
        return inspect.cleandoc(getattr(action, "__doc__", None) or "")

    def get_serializer_name(self, serializer: Any, direction: str) -> str:
        return component_name(type(serializer), direction)

    def map_parsers(self) -> list[str]:
        """Declare only JSON. Client generators fail on two types of one body; the description names forms."""
        return ["application/json"]

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
            undeclared = _UNDECLARED.get((self.method, self.path), frozenset())
            for status in set(self._common_errors(operation)) - undeclared:
                responses.setdefault(status, self._error_response(status))
            operation["responses"] = dict(sorted(responses.items()))
        return operation

    def _error_response(self, status: str) -> dict[str, Any]:
        """Return the response object of an error status that every operation can return."""
        schema = self.resolve_serializer(ErrorBody, "response").ref  # type: ignore[arg-type]  # a struct
        return {
            "description": DESCRIPTIONS[status],
            "content": {"application/json": {"schema": schema}},
        }

    def _common_errors(self, operation: Mapping[str, Any]) -> list[str]:
        statuses = ["400", "429", "500", "503"]
        if operation.get("security"):
            statuses += ["401", "403"]
        if "{" in self.path:
            statuses.append("404")
        if self.method in {"POST", "PUT", "PATCH"}:
            statuses += ["408", "413"]
        return statuses


def refusal(status: int, description: str = "") -> OpenApiResponse:
    """Return the response that a view declares for an error status: the Error body and a description."""
    return OpenApiResponse(response=ErrorBody, description=description or DESCRIPTIONS[str(status)])


STALE: Final = refusal(409, "The document changed in the meantime: read it again and retry.")
NOT_MODIFIED: Final = OpenApiResponse(description="The caller's copy is the present one.")
