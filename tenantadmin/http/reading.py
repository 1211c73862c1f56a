"""Reading what a request asks for: its query and its body, or a refusal that names each place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenantadmin.core.errors import BadRequest, Detail, ValidationFailed
from tenantadmin.http.handler import validation_details
from tenantadmin.http.serializers import unknown_name_message

if TYPE_CHECKING:
    from rest_framework import serializers
    from rest_framework.request import Request


def read_body(serializer_class: type[serializers.Serializer[Any]], request: Request) -> Any:
    """Return the validated body of ``request``.

    Raises:
        ValidationFailed: with the place and the cure of every finding.
    """
    data = request.data
    may_be_absent = getattr(serializer_class, "may_be_absent", False)
    if not isinstance(data, dict) or not (may_be_absent or _has_body(request)):
        raise ValidationFailed(details=[Detail("", "not-an-object", "Send a JSON object.")])
    return validated(serializer_class, data)


def validated(serializer_class: type[serializers.Serializer[Any]], data: Any) -> Any:
    """Return ``data`` as a serializer validates it.

    Raises:
        ValidationFailed: with the place and the cure of every finding.
    """
    serializer = serializer_class(data=data)
    if not serializer.is_valid():
        raise ValidationFailed(details=validation_details(serializer.errors))
    return serializer.validated_data


def _has_body(request: Request) -> bool:
    return request.META.get("CONTENT_LENGTH") not in {None, "", "0"}


def read_items(serializer_class: type[serializers.Serializer[Any]], request: Request) -> list[Any]:
    """Return the validated items of a body that is an array.

    Raises:
        ValidationFailed: with the place and the cure of every finding.
    """
    if not isinstance(request.data, list):
        raise ValidationFailed(details=[Detail("", "not-a-list", "Send an array.")])
    serializer = serializer_class(data=request.data, many=True)
    if not serializer.is_valid():
        raise ValidationFailed(details=validation_details(serializer.errors))
    items: list[Any] = serializer.validated_data
    return items


def read_query(
    serializer_class: type[serializers.Serializer[Any]] | None, request: Request
) -> dict[str, Any]:
    """Return the validated query parameters of ``request``: unknown and repeated ones are refused.

    Raises:
        BadRequest: with each parameter's finding in ``details``.
    """
    if serializer_class is None and not request.META.get("QUERY_STRING"):
        return {}
    repeated = [name for name, values in request.query_params.lists() if len(values) > 1]
    if repeated:
        raise BadRequest(
            "A query parameter stands twice.",
            details=[Detail(f"/{name}", "repeated-parameter", f"Send '{name}' once.") for name in repeated],
        )
    fields = serializer_class().fields if serializer_class else {}
    unknown = [name for name in request.query_params if name not in fields]
    if unknown:
        raise BadRequest(
            "A query parameter is not known.",
            details=[
                Detail(
                    f"/{name}",
                    "unknown-parameter",
                    unknown_name_message(name, fields, kind="query parameter"),
                )
                for name in unknown
            ],
        )
    if serializer_class is None:
        return {}
    serializer = serializer_class(data=request.query_params.dict())
    if not serializer.is_valid():
        raise BadRequest("A query parameter is not valid.", details=validation_details(serializer.errors))
    validated: dict[str, Any] = serializer.validated_data
    return validated
