"""Serializers that ignore nothing silently."""

from __future__ import annotations

import datetime as dt
import difflib
from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tenantadmin.core.errors import BadRequest, Detail, ValidationFailed
from tenantadmin.core.timestamps import format_timestamp, parse_timestamp
from tenantadmin.http.handler import validation_details

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rest_framework.request import Request


def unknown_name_message(name: str, known: Iterable[str], *, kind: str = "property") -> str:
    """Return a sentence that names the unknown ``name`` and the nearest known one."""
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"Unknown {kind} '{name[:80]}'." + (f" Did you mean '{nearest[0]}'?" if nearest else "")


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that refuses members it does not declare, naming the nearest one it does."""

    #: Whether a request may leave such a body out.
    may_be_absent: ClassVar[bool] = False

    default_error_messages: ClassVar = {"invalid": "Send a JSON object."}

    def to_internal_value(self, data: Any) -> Any:
        unknown: dict[str, list[Any]] = {}
        if isinstance(data, dict):
            known = list(self.fields)
            unknown = {
                name: [serializers.ErrorDetail(unknown_name_message(name, known), code="unknown-property")]
                for name in data
                if name not in self.fields
            }
        try:
            value = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if isinstance(error.detail, dict):
                raise serializers.ValidationError({**error.detail, **unknown}) from error
            raise
        if unknown:
            raise serializers.ValidationError(unknown)
        return value


@extend_schema_field(OpenApiTypes.DATETIME)
class TimestampField(serializers.Field[dt.datetime, str, str, Any]):
    """A date-time: out with milliseconds and ``Z``, in with any zone but never without one."""

    default_error_messages: ClassVar = {
        "invalid": "Give a date-time with its zone, like 2026-11-21T02:45:07.123Z."
    }

    def to_internal_value(self, data: Any) -> dt.datetime:
        if not isinstance(data, str):
            self.fail("invalid")
        try:
            return parse_timestamp(data)
        except ValueError as error:
            raise serializers.ValidationError(str(error), code="invalid") from error

    def to_representation(self, value: dt.datetime) -> str:
        return format_timestamp(value)


class StrictCharField(serializers.CharField):
    """Text that was sent as text: a number or a boolean is not turned into one."""

    default_error_messages: ClassVar = {"invalid": "Not a valid string."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictBooleanField(serializers.BooleanField):
    """``true`` or ``false``: neither a text nor a number is turned into one."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


def read_body(serializer_class: type[serializers.Serializer[Any]], request: Request) -> Any:
    """Return the validated body of ``request``.

    Raises:
        ValidationFailed: with the place and the cure of every finding.
    """
    data = request.data
    may_be_absent = getattr(serializer_class, "may_be_absent", False)
    if not isinstance(data, dict) or not (may_be_absent or _has_body(request)):
        raise ValidationFailed(details=[Detail("", "not-an-object", "Send a JSON object.")])
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
