"""Serializers of rulesets, drafts, markers and cache metadata. The contract is made from them too."""

# ruff: noqa: N815  (fields have the names of the JSON members)
from __future__ import annotations

from typing import Any, ClassVar, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.serializers import ListField

from accounts.revisions import MAX_LIMIT
from accounts.serializers.history import CommentParameters, PageParameters
from accounts.serializers.tenants import IfChangedParameters
from rules.conditions import CONDITION_KEYS, InvalidRequest, read_request
from rules.conditions.patterns import MAX_GLOB, MAX_NAMES
from rules.language import VARY_COLUMNS, Action
from tenantadmin.lib.http.serializers import (
    IgnoredField,
    JsonIntegerField,
    LineField,
    OneOfField,
    StrictCharField,
    StrictIntegerField,
    StrictRegexField,
    StrictSerializer,
    StrictUuidField,
    TimestampField,
    unknown_name_message,
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


class BlameParameters(StrictSerializer):
    seq = StrictIntegerField(required=False, min_value=0, help_text="Default: the current revision.")


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

    markerId = StrictRegexField(_MARKER_ID, source="marker_id")
    targetRuleId = StrictRegexField(_RULE_ID, source="target_rule_id")
    metadata = MarkerMetadata(required=False)
    invalidatedBy = InvalidatedBy(source="invalidated_by", required=False)


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
    targetRuleId = StrictCharField(source="target_rule_id", required=False, max_length=128)


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


#: What a request may have: what conditions test, and what results vary by.
_COLUMNS: Final = (*CONDITION_KEYS, *(column for column in VARY_COLUMNS if column not in CONDITION_KEYS))


@extend_schema_field({"$ref": "#/components/schemas/RequestColumns"})
class RequestField(serializers.JSONField):
    """A request: condition keys and ``varyBy`` columns to values, as in ``proxy_logs``. Absent is null."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Send an object of condition keys.", code="wrong-type")
        unknown = {
            name: [unknown_name_message(name, _COLUMNS, kind="condition key")]
            for name in data
            if name not in _COLUMNS
        }
        if unknown:
            raise serializers.ValidationError(unknown, code="unknown-condition-key")
        wrong = {
            name: [f"{name} must be a string or null."]
            for name in VARY_COLUMNS
            if not isinstance(data.get(name), str | None)
        }
        if wrong:
            raise serializers.ValidationError(wrong, code="wrong-type")
        try:
            tables = read_request(data)["tables"]
        except InvalidRequest as error:
            raise serializers.ValidationError({error.key: [f"{error}."]}, code="wrong-type") from error
        if isinstance(tables, frozenset) and len(tables) > MAX_NAMES:
            message = f"A request to explain has at most {MAX_NAMES:,} tables, not {len(tables):,}."
            raise serializers.ValidationError({"tables": [message]}, code="out-of-range")
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


@extend_schema_field(OpenApiTypes.OBJECT)
class DraftRuleField(serializers.JSONField):
    """A rule, which may have lint errors."""


class DraftStart(StrictSerializer):
    """A draft to make, or to replace another."""

    may_be_absent = True

    name = LineField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="Default: what the draft changes; empty if it changes nothing.",
    )
    rules = serializers.ListField(
        child=DraftRuleField(allow_null=True), required=False, help_text="Default: the current rules."
    )
    baseSeq = JsonIntegerField(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        help_text="The revision that the draft changes. Default: the current one.",
    )


class DraftBody(DraftStart):
    """What replaces a draft. What is read-only may be sent back as read."""

    may_be_absent = False

    rules = serializers.ListField(child=DraftRuleField(allow_null=True))
    draftId = IgnoredField(required=False)
    tenantId = IgnoredField(required=False)
    lint = IgnoredField(required=False)
    createdAt = IgnoredField(required=False)
    createdBy = IgnoredField(required=False)
    modifiedAt = IgnoredField(required=False)
    modifiedBy = IgnoredField(required=False)
