"""Serializers of the explanation of a request."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from rules.conditions import CONDITION_KEYS, InvalidRequest, read_request
from rules.conditions.globs import MAX_NAMES
from rules.language import VARY_COLUMNS
from tenantadmin.lib.http.serializers import (
    JsonIntegerField,
    StrictSerializer,
    StrictUuidField,
    TimestampField,
    unknown_name_message,
)

#: What a request may have: what conditions test, and what results vary by.
_COLUMNS: Final = (*CONDITION_KEYS, *(column for column in VARY_COLUMNS if column not in CONDITION_KEYS))


@extend_schema_field({"$ref": "#/components/schemas/RequestColumns"})
class RequestField(serializers.JSONField):
    """A request: condition keys and ``varyBy`` columns to values, as in ``proxy_logs``. Absent is null."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Send an object of condition keys.", code="wrong-type")
        unknown = {
            name: [unknown_name_message(name, _COLUMNS, kind="condition key")]
            for name in data
            if name not in _COLUMNS
        }
        if unknown:
            raise serializers.ValidationError(unknown, code="unknown-condition-key")
        wrong = {
            name: [f"{name} must be a string or null."]
            for name in VARY_COLUMNS
            if not isinstance(data.get(name), str | None)
        }
        if wrong:
            raise serializers.ValidationError(wrong, code="wrong-type")
        try:
            tables = read_request(data)["tables"]
        except InvalidRequest as error:
            raise serializers.ValidationError({error.key: [f"{error}."]}, code="wrong-type") from error
        if isinstance(tables, frozenset) and len(tables) > MAX_NAMES:
            message = f"A request to explain has at most {MAX_NAMES:,} tables, not {len(tables):,}."
            raise serializers.ValidationError({"tables": [message]}, code="out-of-range")
        return data


class ChosenRulesBody(StrictSerializer):
    """Which rules decide; at most one member."""

    seq = JsonIntegerField(required=False, min_value=0, help_text="A revision of the rules.")
    draftId = StrictUuidField(required=False, help_text="A draft of the rules, which has no lint errors.")

    def validate(self, attrs: Any) -> Any:
        given = [name for name in ("seq", "draftId", "at") if name in attrs]
        for name in given[1:]:
            message = f"Send either '{given[0]}' or '{name}'."
            raise serializers.ValidationError({name: [serializers.ErrorDetail(message, "conflicting")]})
        return attrs


class ExplainRequestBody(ChosenRulesBody):
    """A request, and which rules decide it: by default the current ones."""

    request = RequestField()
    at = TimestampField(required=False, help_text="The rules that were in force at this moment.")
