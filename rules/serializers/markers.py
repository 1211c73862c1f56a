"""Serializers of markers. Contract: Invalidation marker."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.serializers import ListField

from accounts.revisions import MAX_LIMIT
from accounts.serializers.history import PageParameters
from rules.conditions.globs import MAX_GLOB
from tenantadmin.lib.http.serializers import (
    IgnoredField,
    OneOfField,
    StrictCharField,
    StrictIntegerField,
    StrictRegexField,
    StrictSerializer,
    TimestampField,
)

_MARKER_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z"
_RULE_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z"
#: In bytes of UTF-8.
_MAX_STATEMENT = 64 << 10


class StatementField(StrictCharField):
    """A statement that is stored with a marker."""

    default_error_messages: ClassVar = {"max_bytes": f"At most {_MAX_STATEMENT:,} bytes of UTF-8 are stored."}

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=_MAX_STATEMENT, trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        statement = super().to_internal_value(data)
        if len(statement.encode(errors="surrogatepass")) > _MAX_STATEMENT:
            self.fail("max_bytes")
        return statement


class MarkerMetadata(StrictSerializer):
    """Notes for the audit."""

    reason = StrictCharField(required=False, allow_blank=True, max_length=2000, trim_whitespace=False)


class InvalidatedBy(StrictSerializer):
    """What invalidated the results: a rule, a statement, a source."""

    ruleId = StrictRegexField(_RULE_ID, required=False)
    statement = StatementField(required=False)
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
    createdBy = IgnoredField(required=False)
    superseded = IgnoredField(required=False)


class MarkerPageParameters(PageParameters):
    """Pages only for callers that ask for them: Gateways poll the whole list."""

    limit = StrictIntegerField(
        required=False,
        min_value=1,
        max_value=MAX_LIMIT,
        help_text="How many markers a page has. Without it, one page has all.",
    )


class MarkerParameters(MarkerPageParameters):
    since = TimestampField(required=False, help_text="Only markers made or changed after this time.")
    status = OneOfField(choices=["active", "expired"], required=False)
    targetRuleId = StrictCharField(required=False, max_length=128)


class FeedParameters(MarkerPageParameters):
    since = TimestampField(required=False, help_text="Only markers made, changed or deleted after this time.")


class InvalidationRequest(StrictSerializer):
    """The statement that fired a rule with ``invalidateRules``."""

    statement = StatementField()


class TableInvalidationRequest(StrictSerializer):
    """The tables whose cached results are stale."""

    tables = ListField(
        child=StrictCharField(max_length=MAX_GLOB, trim_whitespace=False),
        min_length=1,
        max_length=100,
        help_text="Names or patterns such as `sales.*`; case is ignored.",
    )
    reason = StrictCharField(required=False, max_length=2000, trim_whitespace=False)
    ruleIds = ListField(
        child=StrictRegexField(_RULE_ID),
        required=False,
        min_length=1,
        help_text="Only these of the rules that the preview found. Absent: all of them. "
        "The preview itself always shows all.",
    )
