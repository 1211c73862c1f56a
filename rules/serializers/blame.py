"""Serializers of blame."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.serializers.history import Change
from tenantadmin.lib.http.serializers import (
    StrictIntegerField,
    StrictSerializer,
)


class BlameParameters(StrictSerializer):
    seq = StrictIntegerField(required=False, min_value=0, help_text="Default: the current revision.")


class BlamedField(serializers.Serializer[Any]):
    path = serializers.CharField(help_text="JSON Pointer into the rule.")
    seq = serializers.IntegerField(min_value=0, help_text="The revision that last changed the value.")
    atMost = serializers.BooleanField(help_text="True if older revisions, which were not read, may have.")


class BlamedRule(serializers.Serializer[Any]):
    ruleId = serializers.CharField()
    fields = BlamedField(many=True)  # type: ignore[assignment]  # a member, not the property


class RulesBlame(serializers.Serializer[Any]):
    """The revision that last changed each value of a ruleset."""

    seq = serializers.IntegerField(min_value=0)
    order = BlamedField(help_text="The order of the rules; its path is `/order`.")
    rules = BlamedRule(many=True)
    revisions = Change(many=True, help_text="The revisions that are named above, newest first.")
