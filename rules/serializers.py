"""Serializers of rulesets, lint results, markers and cache metadata, for bodies and for the contract.

Contract: Cache rules, Lint result, Invalidation marker, Cache metadata.
"""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from accounts.serializers.history import DiffHead, FieldDifference, PageParameters
from rules.language import Action
from rules.lint import Severity
from tenantadmin.http.serializers import (
    HalItem,
    HalLinks,
    IgnoredField,
    ItemList,
    JsonIntegerField,
    Link,
    OneOfField,
    StrictCharField,
    StrictRegexField,
    StrictSerializer,
    StrictUuidField,
    TimestampField,
)

_MARKER_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z"
_RULE_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z"
_MAX_STATEMENT = 1_000_000
_LARGE = 2**53


@extend_schema_field(OpenApiTypes.OBJECT)
class ConditionsField(serializers.JSONField):
    """Conditions on request columns, combined with ``all``, ``any`` and ``not``. All must hold."""


@extend_schema_serializer(component_name="Rule")
class RuleBody(serializers.Serializer[Any]):
    """A cache rule. Only ``id`` is required."""

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
    """A cache rule with every default filled in."""

    name = serializers.CharField(allow_blank=True)
    enabled = serializers.BooleanField()
    action = serializers.ChoiceField(choices=[action.value for action in Action])
    conditions = ConditionsField()
    ttlSeconds = serializers.IntegerField(min_value=1, max_value=31_536_000)
    requireInvalidation = serializers.BooleanField()


@extend_schema_serializer(component_name="TenantRules")
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


class TenantRules(serializers.Serializer[Any]):
    """A tenant's ruleset."""

    tenantId = serializers.UUIDField()
    cacheBust = serializers.CharField(help_text="Opaque. Sorts as text and grows with every write.")
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
    """The findings of lint. Warnings do not make a ruleset invalid."""

    valid = serializers.BooleanField()
    errors = Finding(many=True)  # type: ignore[assignment]  # a member, not the property
    warnings = Finding(many=True)


class RulesetRefusal(serializers.Serializer[Any]):
    """The error body. If lint refused the ruleset, the same object holds the lint result."""

    error = serializers.CharField()
    message = serializers.CharField()
    requestId = serializers.CharField()
    details = serializers.ListField(child=serializers.DictField(), required=False)
    valid = serializers.BooleanField(required=False)
    errors = Finding(many=True, required=False)  # type: ignore[assignment]  # a member, not the property
    warnings = Finding(many=True, required=False)


class IdListField(StrictCharField):
    """Comma-separated rule ids."""

    def to_internal_value(self, data: Any) -> Any:
        return frozenset(part for part in super().to_internal_value(data).split(",") if part)


class ConfirmParameters(StrictSerializer):
    confirmDeletes = IdListField(
        required=False,
        allow_blank=True,
        help_text="Comma-separated ids of rules that may be removed although they have active markers.",
    )


class RuleDifference(serializers.Serializer[Any]):
    """A rule that differs between two revisions. Paths are relative to the rule."""

    id = serializers.CharField()
    fields = FieldDifference(many=True)  # type: ignore[assignment]  # a member, not the property


@extend_schema_serializer(component_name="RulesDiff")
class RulesDifference(DiffHead):
    """The differences between two rulesets. Rules are compared by id; their order is not compared."""

    added = Rule(many=True)
    removed = Rule(many=True)
    changed = RuleDifference(many=True)


class MarkerMetadata(StrictSerializer):
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
    statement = StrictCharField(max_length=_MAX_STATEMENT, trim_whitespace=False)


class InvalidationResult(serializers.Serializer[Any]):
    """The markers of one cross-rule invalidation."""

    _links = HalLinks()
    markers = MarkerDocument(many=True)


@extend_schema_serializer(component_name="CacheMetadata")
class CacheMetadataBody(StrictSerializer):
    """Metadata about a cached result."""

    tenantId = StrictUuidField(required=False)
    cacheKey = StrictCharField(required=False, max_length=256)
    ruleId = StrictRegexField(_RULE_ID)
    queryHash = StrictCharField(required=False, max_length=256)
    statement = StrictCharField(required=False, max_length=1_000_000, trim_whitespace=False)
    sizeBytes = JsonIntegerField(required=False, min_value=0, max_value=_LARGE)
    rowCount = JsonIntegerField(required=False, min_value=0, max_value=_LARGE)
    createdAt = TimestampField(required=False, help_text="Default now.")
    expiresAt = TimestampField(required=False)
    lastAccessedAt = TimestampField(required=False)
    hitCount = JsonIntegerField(required=False, min_value=0, max_value=_LARGE)
    tables = serializers.ListField(child=StrictCharField(max_length=500), required=False, max_length=1000)
    tags = serializers.DictField(child=serializers.JSONField(), required=False)


@extend_schema_serializer(component_name="CacheMetadata")
class CacheMetadataDocument(CacheMetadataBody):
    """Cache metadata as stored."""

    tenantId = StrictUuidField()
    cacheKey = StrictCharField()
    createdAt = TimestampField()


class CacheKeyParameters(PageParameters):
    ruleId = StrictCharField(required=False, max_length=128, help_text="Only results of this rule.")


@extend_schema_serializer(component_name="CacheKeyEntry")
class CacheKeyEntry(CacheMetadataBody):
    """The metadata of one of many cache keys."""

    cacheKey = StrictRegexField(r"^[A-Za-z0-9._-]{1,256}\Z")  # type: ignore[assignment]  # required here


class CacheKeyPageLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()
    next = Link(required=False)
    items = HalItem(many=True)


class CacheKeyPage(serializers.Serializer[Any]):
    """A page of cache metadata, in the order of the cache keys, each with a link."""

    _links = CacheKeyPageLinks()
    cacheKeys = CacheMetadataDocument(many=True)
