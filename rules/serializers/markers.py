"""Serializers of markers. Contract: Invalidation marker."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from rest_framework.serializers import ListField

from rules.conditions.globs import MAX_GLOB
from tenantadmin.lib.http.serializers import (
    IgnoredField,
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


class MarkerParameters(StrictSerializer):
    since = TimestampField(required=False, help_text="Only markers made or changed after this time.")
    status = OneOfField(choices=["active", "expired"], required=False)
    targetRuleId = StrictCharField(required=False, max_length=128)


class FeedParameters(StrictSerializer):
    since = TimestampField(required=False, help_text="Only markers made, changed or deleted after this time.")


class InvalidationRequest(StrictSerializer):
    """The statement that fired a rule with ``invalidateRules``."""

    statement = StrictCharField(max_length=_MAX_STATEMENT, trim_whitespace=False)


class TableInvalidationRequest(StrictSerializer):
    """The tables whose cached results are stale."""

    tables = ListField(
        child=StrictCharField(max_length=MAX_GLOB, trim_whitespace=False),
        min_length=1,
        max_length=100,
        help_text="Names or patterns such as `sales.*`; case is ignored.",
    )
    reason = StrictCharField(required=False, max_length=2000, trim_whitespace=False)
