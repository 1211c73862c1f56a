"""Serializers of rulesets. Contract: Cache rules."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.serializers.history import CommentParameters
from accounts.serializers.tenants import IfChangedParameters
from rules.language import VARY_COLUMNS, Action
from tenantadmin.lib.http.serializers import (
    StrictCharField,
)

ACTIONS = [action.value for action in Action]


@extend_schema_field({"$ref": "#/components/schemas/Conditions"})
class ConditionsField(serializers.JSONField):
    """Conditions on request columns, combined with ``all``, ``any`` and ``not``. All must hold."""


class RuleBody(serializers.Serializer[Any]):
    """A cache rule. Only ``id`` is required."""

    id = serializers.RegexField(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    name = serializers.CharField(required=False, allow_blank=True)
    description = serializers.CharField(required=False, allow_blank=True)
    enabled = serializers.BooleanField(required=False)
    action = serializers.ChoiceField(choices=ACTIONS, required=False)
    conditions = ConditionsField(required=False)
    ttlSeconds = serializers.IntegerField(min_value=1, max_value=31_536_000, required=False)
    staleWhileRevalidate = serializers.IntegerField(min_value=0, max_value=604_800, required=False)
    varyBy = serializers.ListField(
        child=serializers.ChoiceField(choices=VARY_COLUMNS),
        required=False,
        help_text="The columns of the request that a cached result depends on. `[]` says that it is the same "
        "for everybody; absent means that too, with a warning.",
    )
    invalidateRules = serializers.ListField(child=serializers.CharField(), required=False)
    requireInvalidation = serializers.BooleanField(required=False)


class Rule(RuleBody):
    """A cache rule with every default filled in."""

    name = serializers.CharField(allow_blank=True)
    enabled = serializers.BooleanField()
    action = serializers.ChoiceField(choices=ACTIONS)
    conditions = ConditionsField()
    ttlSeconds = serializers.IntegerField(min_value=1, max_value=31_536_000)
    requireInvalidation = serializers.BooleanField()


class TenantRulesBody(serializers.Serializer[Any]):
    """A ruleset to write or to check. Read-only members may be sent back unchanged."""

    tenantId = serializers.UUIDField(required=False)
    cacheBust = serializers.CharField(
        required=False, allow_blank=True, help_text="A stale value is refused with 409."
    )
    seq = serializers.IntegerField(
        min_value=0, required=False, help_text="A stale value is refused with 409."
    )
    modifiedAt = serializers.DateTimeField(required=False)
    rules = RuleBody(many=True)


class CheckedRulesBody(TenantRulesBody):
    """A ruleset to check."""

    compareWith = RuleBody(
        many=True, required=False, help_text="Rules as they are now, to be told what changes in them."
    )


class IdListField(StrictCharField):
    """Comma-separated rule ids."""

    def to_internal_value(self, data: Any) -> Any:
        return frozenset(part for part in super().to_internal_value(data).split(",") if part)


class PublishParameters(CommentParameters):
    confirmDeletes = IdListField(
        required=False,
        allow_blank=True,
        help_text="Comma-separated ids of rules that may be removed although they have active markers.",
    )


class WriteRulesParameters(IfChangedParameters, PublishParameters):
    pass
