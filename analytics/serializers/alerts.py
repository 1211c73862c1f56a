"""Serializers of requests on alerts."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from rest_framework import serializers

from accounts.serializers.fields import EmailField
from accounts.serializers.users import Rotation
from analytics.alerts.kinds import TENANT_KINDS
from analytics.alerts.storing import MAX_CHANNELS
from tenantadmin.lib.core.outgoing import MAX_URL, check_url, parse_exceptions
from tenantadmin.lib.http.serializers import (
    JsonBooleanField,
    JsonIntegerField,
    LineField,
    OneOfField,
    StrictCharField,
    StrictRegexField,
    StrictSerializer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHANNEL_TYPES: Final = ("email", "webhook", "slack")
_MAX_NUMBER: Final = 1e300
_TIME: Final = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"


class JsonNumberField(serializers.FloatField):
    """A number in a JSON body. Text is refused."""

    def to_internal_value(self, data: Any) -> float:
        # A larger integer is no float.
        if isinstance(data, bool) or not isinstance(data, int | float) or not abs(data) <= _MAX_NUMBER:
            raise serializers.ValidationError("Give a number.", code="invalid")
        return float(data)


class WebhookUrlField(StrictCharField):
    """The URL of a receiver. The host is in lower case."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_URL, trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        exceptions = parse_exceptions(tuple(settings.WEBHOOK_EXCEPTIONS))
        try:
            return check_url(super().to_internal_value(data), exceptions=exceptions)
        except ValueError as error:
            raise serializers.ValidationError(str(error), code="invalid-url") from error


class AlertChannelBody(StrictSerializer):
    """Where messages go: ``email`` has ``to``, a member's address; ``webhook`` and ``slack`` have ``url``."""

    type = OneOfField(choices=_CHANNEL_TYPES)
    to = EmailField(required=False)
    url = WebhookUrlField(required=False, help_text="`https` alone, and a public host.")

    def validate(self, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        wanted, other = ("to", "url") if attrs["type"] == "email" else ("url", "to")
        problems = {}
        if wanted not in attrs:
            problems[wanted] = [f"A channel of the type '{attrs['type']}' needs it."]
        if other in attrs:
            problems[other] = [f"A channel of the type '{attrs['type']}' does not have it."]
        if problems:
            raise serializers.ValidationError(problems)
        return attrs


class AlertQuietHoursBody(StrictSerializer):
    """A time of each day, in UTC, in which no message is sent."""

    to = StrictRegexField(_TIME, help_text="`HH:MM`; earlier than `from` if a midnight is between.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {"from": StrictRegexField(_TIME, help_text="`HH:MM`"), **super().get_fields()}

    def validate(self, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        if attrs["from"] == attrs["to"]:
            raise serializers.ValidationError({"to": ["Give another time than `from`."]})
        return attrs


class AlertBody(StrictSerializer):
    """An alert. The list of alerts has the defaults and units of ``threshold`` and ``window`` by kind."""

    name = LineField(max_length=100)
    kind = OneOfField(choices=TENANT_KINDS)
    threshold = JsonNumberField(required=False)
    window = JsonIntegerField(required=False, min_value=1, max_value=168)
    channels = serializers.ListField(child=AlertChannelBody(), min_length=1, max_length=MAX_CHANNELS)
    quietHours = AlertQuietHoursBody(required=False, allow_null=True)
    enabled = JsonBooleanField(required=False, default=True)


class AlertRotation(Rotation):
    """How long messages have a signature by the former secret too."""
