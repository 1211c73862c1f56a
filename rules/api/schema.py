"""The shape of rulesets and of what lint says, for the contract. Contract: Cache rules, Lint result."""
# ruff: noqa: N815  (the members' names are those of the JSON)

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from rules.language import Action
from rules.lint import Severity


@extend_schema_field(OpenApiTypes.OBJECT)
class ConditionsField(serializers.JSONField):
    """Conditions, ANDed: request columns, ``all``, ``any``, ``not``."""


@extend_schema_serializer(component_name="Rule")
class RuleBody(serializers.Serializer[Any]):
    """A cache rule as sent: only ``id`` is required."""

    id = serializers.RegexField(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    name = serializers.CharField(required=False, allow_blank=True)
    description = serializers.CharField(required=False, allow_blank=True)
    enabled = serializers.BooleanField(required=False)
    action = serializers.ChoiceField(choices=[action.value for action in Action], required=False)
    conditions = ConditionsField(required=False)
    ttlSeconds = serializers.IntegerField(min_value=1, max_value=31_536_000, required=False)
    staleWhileRevalidate = serializers.IntegerField(min_value=0, max_value=604_800, required=False)
    invalidateRules = serializers.ListField(child=serializers.CharField(), required=False)
    requireInvalidation = serializers.BooleanField(required=False)


class Rule(RuleBody):
    """A cache rule as stored: every default is written out."""

    name = serializers.CharField(allow_blank=True)
    enabled = serializers.BooleanField()
    action = serializers.ChoiceField(choices=[action.value for action in Action])
    conditions = ConditionsField()
    ttlSeconds = serializers.IntegerField(min_value=1, max_value=31_536_000)
    requireInvalidation = serializers.BooleanField()


@extend_schema_serializer(component_name="TenantRules")
class TenantRulesBody(serializers.Serializer[Any]):
    """A ruleset to write or to check; what is read-only may be sent back as read."""

    tenantId = serializers.UUIDField(required=False)
    cacheBust = serializers.CharField(required=False, allow_blank=True, help_text="A stale one is a 409.")
    seq = serializers.IntegerField(min_value=0, required=False, help_text="A stale one is a 409.")
    modifiedAt = serializers.DateTimeField(required=False)
    rules = RuleBody(many=True)


class TenantRules(serializers.Serializer[Any]):
    """A tenant's ruleset."""

    tenantId = serializers.UUIDField()
    cacheBust = serializers.CharField(help_text="Opaque; sorts as text, grows with every write.")
    seq = serializers.IntegerField(min_value=0)
    modifiedAt = serializers.DateTimeField()
    rules = Rule(many=True)


class Finding(serializers.Serializer[Any]):
    """One finding of lint."""

    code = serializers.CharField()
    severity = serializers.ChoiceField(choices=[severity.value for severity in Severity])
    ruleId = serializers.CharField(allow_null=True)
    path = serializers.CharField(help_text="JSON Pointer.")
    message = serializers.CharField()
    suggestion = serializers.CharField(required=False)


class RuleLintResult(serializers.Serializer[Any]):
    """What lint says of a ruleset; warnings never make it invalid."""

    valid = serializers.BooleanField()
    errors = Finding(many=True)  # type: ignore[assignment]  # a member, not the property
    warnings = Finding(many=True)


class RulesetRefusal(serializers.Serializer[Any]):
    """The error body; where lint refused the ruleset, with the lint result in the same object."""

    error = serializers.CharField()
    message = serializers.CharField()
    requestId = serializers.CharField()
    details = serializers.ListField(child=serializers.DictField(), required=False)
    valid = serializers.BooleanField(required=False)
    errors = Finding(many=True, required=False)  # type: ignore[assignment]  # a member, not the property
    warnings = Finding(many=True, required=False)
