"""Serializers and path parameters of the log tree and of SQL queries. The contract is made from them too.

Contract: Raw logs, SQL over the log.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers

from logs.notifications import day_of_prefix
from tenantadmin.lib.http.serializers import StrictCharField, StrictSerializer


@extend_schema_field({"type": "string", "pattern": "^logs/[0-9]{4}/[0-9]{2}/[0-9]{2}/([01][0-9]|2[0-3])$"})
class HourPrefixField(StrictCharField):
    """The prefix of an hour of raw logs. Its value is the day."""

    default_error_messages: ClassVar = {"invalid": "Give the prefix of an hour, like logs/2026/11/23/04."}

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> Any:
        try:
            return day_of_prefix(super().to_internal_value(data))
        except ValueError:
            self.fail("invalid")


class LogNotification(StrictSerializer):
    """Hours whose raw logs have new or changed objects."""

    prefixes = serializers.ListField(child=HourPrefixField(), max_length=1_000)


class StatementField(StrictCharField):
    """A field that accepts any text. The guard checks it later, so that the audit has it as sent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.validators = []


class QueryBody(StrictSerializer):
    """A query of the log."""

    sql = StatementField(
        trim_whitespace=False, allow_blank=True, help_text="One SELECT (or WITH … SELECT) over `proxy_logs`."
    )
    parameters = serializers.DictField(
        child=StatementField(trim_whitespace=False, allow_blank=True),
        required=False,
        help_text="Values of `{{name}}` in `sql`: always text, never SQL. Absent: braces stay as they are.",
    )


def _number(name: str, pattern: str) -> OpenApiParameter:
    return OpenApiParameter(
        name, {"type": "string", "pattern": f"^{pattern}$"}, OpenApiParameter.PATH, description="Zero-padded."
    )


YEAR: Final = _number("year", "[0-9]{4}")

MONTH: Final = _number("month", "(0[1-9]|1[0-2])")

DAY: Final = _number("day", "(0[1-9]|[12][0-9]|3[01])")

HOUR: Final = _number("hour", "([01][0-9]|2[0-3])")

FILE: Final = OpenApiParameter("file", {"type": "string", "pattern": r"\.json$"}, OpenApiParameter.PATH)
