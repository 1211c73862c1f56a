"""Strict serializers and fields of requests.

They refuse unknown members and do not convert types: a text never becomes a number, nor a number a boolean.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
from collections.abc import Iterable
from typing import Any, ClassVar, Final
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tenantadmin.lib.core.emails import is_line
from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.core.timestamps import format_timestamp, parse_timestamp
from tenantadmin.lib.http.handler import validation_details

_DIGITS: Final = re.compile(r"-?[0-9]+")

#: Choices that a message lists.
_MAX_LISTED: Final = 20
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_CANONICAL_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class StrictCharField(serializers.CharField):
    """A text. Numbers and booleans are refused, not converted."""

    default_error_messages: ClassVar = {"invalid": "Not a valid string."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class LineField(StrictCharField):
    """A name: a text of one line."""

    default_error_messages: ClassVar = {"not-a-line": "Give one line, without control characters."}

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not is_line(text):
            self.fail("not-a-line")
        return text


class StrictRegexField(serializers.RegexField):
    """A text that matches a pattern. Numbers and booleans are refused, not converted."""

    def __init__(self, regex: str, **options: Any) -> None:
        super().__init__(regex, trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class OneOfField(serializers.ChoiceField):
    """One of several texts. The error message lists them."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or data not in self.choices:
            names = [str(name) for name in self.choices]
            others = f" and {len(names) - _MAX_LISTED} others" if len(names) > _MAX_LISTED else ""
            raise serializers.ValidationError(
                f"Give one of: {', '.join(names[:_MAX_LISTED])}{others}.", code="invalid_choice"
            )
        return super().to_internal_value(data)


class StrictIntegerField(serializers.IntegerField):
    """An integer in JSON, or decimal digits in a query parameter."""

    default_error_messages: ClassVar = {"invalid": "Give an integer."}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool | float) or (isinstance(data, str) and not _DIGITS.fullmatch(data)):
            self.fail("invalid")
        return super().to_internal_value(data)


class JsonIntegerField(StrictIntegerField):
    """An integer in a JSON body. Text is refused."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class JsonBooleanField(serializers.BooleanField):
    """``true`` or ``false`` in a JSON body."""

    default_error_messages: ClassVar = {"invalid": "Give true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class QueryBooleanField(serializers.BooleanField):
    """``true`` or ``false`` in any case, ``1`` or ``0``, in a query parameter."""

    default_error_messages: ClassVar = {"invalid": "Give true or false."}

    def to_internal_value(self, data: Any) -> bool:
        text = str(data).lower()
        if text not in {"true", "false", "1", "0"}:
            self.fail("invalid")
        return text in {"true", "1"}


class StrictUuidField(serializers.UUIDField):
    """A UUID in lower case with hyphens, as the service writes it."""

    default_error_messages: ClassVar = {
        "invalid": "Give a UUID like 3f2b8c1e-5a7d-4e0f-9c6b-1d2e3f4a5b6c (lower-case, with hyphens)."
    }

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str) or not _CANONICAL_UUID.fullmatch(data):
            self.fail("invalid")
        value: UUID = super().to_internal_value(data)
        return value


@extend_schema_field(OpenApiTypes.DATETIME)
class TimestampField(serializers.Field[dt.datetime, str, str, Any]):
    """A date-time with a time zone. It is written in UTC, with milliseconds and ``Z``."""

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


@extend_schema_field(OpenApiTypes.DATE)
class DayField(serializers.Field[dt.date, str, str, Any]):
    """A day: ``2026-03-01``."""

    default_error_messages: ClassVar = {"invalid": "Give a day like 2026-03-01."}

    def to_internal_value(self, data: Any) -> dt.date:
        if not isinstance(data, str) or not _DAY.fullmatch(data):
            self.fail("invalid")
        try:
            return dt.date.fromisoformat(data)
        except ValueError as error:
            raise serializers.ValidationError(f"There is no such day ({error}).", code="invalid") from error

    def to_representation(self, value: dt.date) -> str:
        return value.isoformat()


@extend_schema_field({"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]})
class MomentField(serializers.Field[dt.date, str, str, Any]):
    """A day, or a date-time with a time zone, which is returned in UTC."""

    def to_internal_value(self, data: Any) -> dt.date:
        if isinstance(data, str) and len(data) > len("2026-03-01"):
            return TimestampField().to_internal_value(data)
        return DayField().to_internal_value(data)

    def to_representation(self, value: dt.date) -> str:
        field = TimestampField() if isinstance(value, dt.datetime) else DayField()
        return field.to_representation(value)  # type: ignore[arg-type]


@extend_schema_field(OpenApiTypes.ANY)
class IgnoredField(serializers.Field[Any, Any, Any, Any]):
    """A member of a response that a request may send back. The request's value is ignored."""

    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: Any) -> Any:
        return value


def unknown_name_message(name: str, known: Iterable[str], *, kind: str = "property") -> str:
    """Return a sentence that names the unknown ``name`` and the nearest known one."""
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"Unknown {kind} '{name[:80]}'." + (f" Did you mean '{nearest[0]}'?" if nearest else "")


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that refuses members it does not declare, naming the nearest one it does."""

    #: True if a request may have no body.
    may_be_absent: ClassVar[bool] = False

    default_error_messages: ClassVar = {"invalid": "Send a JSON object."}

    def get_fields(self) -> dict[str, Any]:
        """Return the fields by the names of the members: ``from_`` is ``from``, a keyword of Python."""
        return {name.removesuffix("_"): field for name, field in super().get_fields().items()}

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


def validated(serializer_class: type[serializers.Serializer[Any]], data: Any) -> Any:
    """Validate ``data`` with a serializer, and return the validated data.

    Raises:
        ValidationFailed: with the place and the message of every error.
    """
    serializer = serializer_class(data=data)
    if not serializer.is_valid():
        raise ValidationFailed(details=validation_details(serializer.errors))
    return serializer.validated_data
