"""Serializers of replays."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from rules.serializers import RuleBody
from tenantadmin.lib.http.serializers import (
    DayField,
    JsonBooleanField,
    JsonIntegerField,
    StrictSerializer,
    StrictUuidField,
)


class ReplayGateway(StrictSerializer):
    """What the Gateway does by itself. What is absent is learned from the log."""

    nocache = JsonBooleanField(
        required=False, help_text="It declines requests with `cacheOverride` = `nocache`."
    )
    nonDeterministic = JsonBooleanField(
        required=False,
        help_text="It declines non-deterministic statements, unless `cacheOverride` is `cache`.",
    )
    keysPerUser = JsonBooleanField(
        required=False, help_text="It keeps the results of users apart, also under rules that do not vary."
    )


@extend_schema_field(RuleBody(many=True))
class RulesField(serializers.JSONField):
    """The rules of a ruleset. Lint checks them."""


class ReplayBody(StrictSerializer):
    """Which ruleset to replay over which days. Give one of ``rules``, ``seq`` and ``draftId``."""

    to = DayField(help_text="The last day, included.")
    rules = RulesField(required=False)
    seq = JsonIntegerField(required=False, min_value=0, max_value=2**31 - 1, help_text="A revision.")
    draftId = StrictUuidField(required=False, help_text="A draft of the rules, which has no lint errors.")
    warmupDays = JsonIntegerField(
        required=False, default=1, min_value=0, max_value=7, help_text="Days before that fill the cache."
    )
    gateway = ReplayGateway(required=False, default=dict)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {"from": DayField(help_text="The first day, included."), **super().get_fields()}
