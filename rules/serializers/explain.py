"""Serializers of the explanation of a request."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from rules.conditions import CONDITION_KEYS, InvalidRequest, read_request
from rules.explain import Outcome
from rules.serializers.rulesets import ACTIONS
from tenantadmin.lib.http.serializers import (
    JsonIntegerField,
    StrictSerializer,
    StrictUuidField,
    TimestampField,
    unknown_name_message,
)


@extend_schema_field({"$ref": "#/components/schemas/RequestColumns"})
class RequestField(serializers.JSONField):
    """A request: condition keys to values, as in a row of ``proxy_logs``. An absent key is null."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Send an object of condition keys.", code="wrong-type")
        unknown = {
            name: [unknown_name_message(name, CONDITION_KEYS, kind="condition key")]
            for name in data
            if name not in CONDITION_KEYS
        }
        if unknown:
            raise serializers.ValidationError(unknown, code="unknown-condition-key")
        try:
            read_request(data)
        except InvalidRequest as error:
            raise serializers.ValidationError({error.key: [f"{error}."]}, code="wrong-type") from error
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


class ChosenRuleset(serializers.Serializer[Any]):
    """The rules that decided."""

    seq = serializers.IntegerField(min_value=0, help_text="Of a draft, the revision that it is based on.")
    draftId = serializers.UUIDField(allow_null=True)
    changedAt = serializers.DateTimeField()
    inForce = serializers.BooleanField(
        help_text="False if the history begins after the moment: then these are the current rules."
    )


class ExplainedFiring(serializers.Serializer[Any]):
    ruleId = serializers.CharField()
    targets = serializers.ListField(child=serializers.CharField())
    required = serializers.BooleanField()  # type: ignore[assignment]  # a member, not the argument


class ExplainedDecision(serializers.Serializer[Any]):
    """What happens. ``ruleId`` and ``action`` are null if no rule matches."""

    ruleId = serializers.CharField(allow_null=True)
    action = serializers.ChoiceField(choices=ACTIONS, allow_null=True)
    statuses = serializers.ListField(
        child=serializers.CharField(), help_text="The cache statuses that the log can show."
    )
    fired = ExplainedFiring(many=True)


class FailedTest(serializers.Serializer[Any]):
    """A test that keeps the rule from matching."""

    path = serializers.CharField(help_text="JSON Pointer into the rule's conditions.")
    key = serializers.CharField()
    operator = serializers.CharField()
    operand = serializers.JSONField()
    value = serializers.JSONField(allow_null=True, help_text="The value of the request.")
    negated = serializers.BooleanField(
        help_text="True inside an odd number of `not`: the test is true, and must be false."
    )


@extend_schema_field(OpenApiTypes.OBJECT)
class ConditionTraceField(serializers.JSONField):
    """The result of each condition: {path, operator, matched} with {key, operand, value} or {parts}."""


class ExplainedRule(serializers.Serializer[Any]):
    """A rule, and what keeps it from matching."""

    ruleId = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    position = serializers.IntegerField(min_value=0)
    action = serializers.ChoiceField(choices=ACTIONS)
    outcome = serializers.ChoiceField(choices=[outcome.value for outcome in Outcome])
    fired = serializers.BooleanField()
    distance = serializers.IntegerField(
        min_value=0,
        allow_null=True,
        help_text="The fewest tests that must change their result; null if the conditions never match.",
    )
    failed = FailedTest(many=True)
    conditions = ConditionTraceField()


class RequestExplanation(serializers.Serializer[Any]):
    """What a ruleset does with a request. The rules that are closest to a match come first."""

    ruleset = ChosenRuleset()
    decision = ExplainedDecision()
    rules = ExplainedRule(many=True)
