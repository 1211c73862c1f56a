"""Serializers of cache metadata. Contract: Cache metadata."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from rest_framework import serializers

from accounts.serializers.history import PageParameters
from rules.serializers.markers import _RULE_ID
from tenantadmin.lib.http.serializers import (
    JsonIntegerField,
    StrictCharField,
    StrictRegexField,
    StrictSerializer,
    StrictUuidField,
    TimestampField,
)

_LARGE = 2**53


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


class CacheKeyParameters(PageParameters):
    ruleId = StrictCharField(required=False, max_length=128, help_text="Only results of this rule.")


class CacheKeyEntry(CacheMetadataBody):
    """The metadata of one of many cache keys."""

    cacheKey = StrictRegexField(r"^[A-Za-z0-9._-]{1,256}\Z")  # type: ignore[assignment]  # required here
