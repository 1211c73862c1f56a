"""Serializers of markers. Contract: Invalidation marker."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from tenantadmin.lib.http.serializers import (
    HalLinks,
    IgnoredField,
    ItemList,
    OneOfField,
    StrictCharField,
    StrictRegexField,
    StrictSerializer,
    TimestampField,
)

_MARKER_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z"
_RULE_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z"
_MAX_STATEMENT = 1_000_000


class MarkerMetadata(StrictSerializer):
    """Notes for the audit."""

    reason = StrictCharField(required=False, allow_blank=True, max_length=2000, trim_whitespace=False)


class InvalidatedBy(StrictSerializer):
    """What invalidated the results: a rule, a statement, a source."""

    ruleId = StrictRegexField(_RULE_ID, required=False)
    statement = StrictCharField(required=False, max_length=_MAX_STATEMENT, trim_whitespace=False)
    triggeredBy = StrictCharField(required=False, max_length=200)


class MarkerCreate(StrictSerializer):
    """A marker to create. It expires after the TTL of its target rule."""

    markerId = StrictRegexField(_MARKER_ID)
    targetRuleId = StrictRegexField(_RULE_ID)
    metadata = MarkerMetadata(required=False)
    invalidatedBy = InvalidatedBy(required=False)


class MarkerUpdate(StrictSerializer):
    """The members of a marker that can be changed. Derived members may be sent back unchanged."""

    metadata = MarkerMetadata(required=False)
    invalidatedBy = InvalidatedBy(required=False)
    markerId = IgnoredField(required=False)
    targetRuleId = IgnoredField(required=False)
    invalidatedAt = IgnoredField(required=False)
    expiresAt = IgnoredField(required=False)
    ttlSeconds = IgnoredField(required=False)
    createdAt = IgnoredField(required=False)
    superseded = IgnoredField(required=False)


@extend_schema_serializer(component_name="InvalidationMarker")
class MarkerDocument(serializers.Serializer[Any]):
    """An invalidation marker."""

    markerId = serializers.CharField()
    targetRuleId = serializers.CharField()
    metadata = MarkerMetadata()
    invalidatedAt = serializers.DateTimeField()
    expiresAt = serializers.DateTimeField()
    ttlSeconds = serializers.IntegerField(min_value=1)
    invalidatedBy = InvalidatedBy()
    createdAt = serializers.DateTimeField()
    superseded = serializers.BooleanField(help_text="The same rule has a newer marker.")


class MarkerParameters(StrictSerializer):
    since = TimestampField(required=False, help_text="Only markers made or changed after this time.")
    status = OneOfField(choices=["active", "expired"], required=False)
    targetRuleId = StrictCharField(required=False, max_length=128)


class MarkerSummary(ItemList):
    """Markers, newest first, each with a link."""

    markers = MarkerDocument(many=True)
    generatedAt = serializers.DateTimeField(help_text="A safe `since` for the next request.")


class FeedParameters(StrictSerializer):
    since = TimestampField(required=False, help_text="Only markers made, changed or deleted after this time.")


@extend_schema_serializer(component_name="FeedMarker")
class FeedMarker(MarkerDocument):
    """A marker of one of the tenants."""

    tenantId = serializers.UUIDField()
    deleted = serializers.BooleanField(help_text="It no longer counts.")


class MarkerFeed(ItemList):
    """Markers of all tenants in the caller's scope, newest first, each with a link."""

    markers = FeedMarker(many=True)
    generatedAt = serializers.DateTimeField(help_text="A safe `since` for the next request.")


class InvalidationRequest(StrictSerializer):
    """The statement that fired a rule with ``invalidateRules``."""

    statement = StrictCharField(max_length=_MAX_STATEMENT, trim_whitespace=False)


class InvalidationResult(serializers.Serializer[Any]):
    """The markers of one cross-rule invalidation."""

    _links = HalLinks(label="")
    markers = MarkerDocument(many=True)
