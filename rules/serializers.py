"""Serializers of rulesets, lint results, markers and cache metadata, for bodies and for the contract.

Contract: Cache rules, Lint result, Invalidation marker, Cache metadata.
"""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from accounts.serializers.history import Change, DiffHead, FieldDifference, PageParameters
from rules.conditions import CONDITION_KEYS, InvalidRequest, read_request
from rules.explain import Outcome
from rules.language import Action
from rules.lint import FINDING_KINDS, Severity
from tenantadmin.http.serializers import (
    ErrorCodeField,
    ErrorDetailField,
    HalLinks,
    IgnoredField,
    ItemList,
    JsonIntegerField,
    Link,
    OneOfField,
    PageLinks,
    StrictCharField,
    StrictIntegerField,
    StrictRegexField,
    StrictSerializer,
    StrictUuidField,
    TimestampField,
    unknown_name_message,
)

_MARKER_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z"
_RULE_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z"
_MAX_STATEMENT = 1_000_000
_LARGE = 2**53


ACTIONS = [action.value for action in Action]
#: The codes of all findings.
FINDING_CODES = sorted(FINDING_KINDS)


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


class TenantRules(serializers.Serializer[Any]):
    """A tenant's ruleset."""

    tenantId = serializers.UUIDField()
    cacheBust = serializers.CharField(help_text="Opaque. Sorts as text and grows with every write.")
    seq = serializers.IntegerField(min_value=0)
    modifiedAt = serializers.DateTimeField()
    rules = Rule(many=True)


class Finding(serializers.Serializer[Any]):
    """One finding of lint."""

    code = serializers.ChoiceField(choices=FINDING_CODES)
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

    error = ErrorCodeField()
    message = serializers.CharField()
    requestId = serializers.CharField()
    details = serializers.ListField(child=ErrorDetailField(), required=False)
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

    _links = HalLinks()
    markers = MarkerDocument(many=True)


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


class CacheMetadataDocument(CacheMetadataBody):
    """Cache metadata as stored."""

    tenantId = StrictUuidField()
    cacheKey = StrictCharField()
    createdAt = TimestampField()


class CacheKeyParameters(PageParameters):
    ruleId = StrictCharField(required=False, max_length=128, help_text="Only results of this rule.")


class CacheKeyEntry(CacheMetadataBody):
    """The metadata of one of many cache keys."""

    cacheKey = StrictRegexField(r"^[A-Za-z0-9._-]{1,256}\Z")  # type: ignore[assignment]  # required here


class CacheKeyPage(serializers.Serializer[Any]):
    """A page of cache metadata, in the order of the cache keys, each with a link."""

    _links = PageLinks()
    cacheKeys = CacheMetadataDocument(many=True)


@extend_schema_field({"$ref": "#/components/schemas/RequestColumns"})
class RequestField(serializers.JSONField):
    """A request: condition keys to values, as in a row of ``proxy_logs``. An absent key is null."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Send an object of condition keys.", code="wrong-type")
        unknown = {
            name: [unknown_name_message(name, CONDITION_KEYS, kind="condition key")]
            for name in data
            if name not in CONDITION_KEYS
        }
        if unknown:
            raise serializers.ValidationError(unknown, code="unknown-condition-key")
        try:
            read_request(data)
        except InvalidRequest as error:
            raise serializers.ValidationError({error.key: [f"{error}."]}, code="wrong-type") from error
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


class ChosenRuleset(serializers.Serializer[Any]):
    """The rules that decided."""

    seq = serializers.IntegerField(min_value=0, help_text="Of a draft, the revision that it is based on.")
    draftId = serializers.UUIDField(allow_null=True)
    changedAt = serializers.DateTimeField()
    inForce = serializers.BooleanField(
        help_text="False if the history begins after the moment: then these are the current rules."
    )


class ExplainedFiring(serializers.Serializer[Any]):
    ruleId = serializers.CharField()
    targets = serializers.ListField(child=serializers.CharField())
    required = serializers.BooleanField()  # type: ignore[assignment]  # a member, not the argument


class ExplainedDecision(serializers.Serializer[Any]):
    """What happens. ``ruleId`` and ``action`` are null if no rule matches."""

    ruleId = serializers.CharField(allow_null=True)
    action = serializers.ChoiceField(choices=ACTIONS, allow_null=True)
    statuses = serializers.ListField(
        child=serializers.CharField(), help_text="The cache statuses that the log can show."
    )
    fired = ExplainedFiring(many=True)


class FailedTest(serializers.Serializer[Any]):
    """A test that keeps the rule from matching."""

    path = serializers.CharField(help_text="JSON Pointer into the rule's conditions.")
    key = serializers.CharField()
    operator = serializers.CharField()
    operand = serializers.JSONField()
    value = serializers.JSONField(allow_null=True, help_text="The value of the request.")
    negated = serializers.BooleanField(
        help_text="True inside an odd number of `not`: the test is true, and must be false."
    )


@extend_schema_field(OpenApiTypes.OBJECT)
class ConditionTraceField(serializers.JSONField):
    """The result of each condition: {path, operator, matched} with {key, operand, value} or {parts}."""


class ExplainedRule(serializers.Serializer[Any]):
    """A rule, and what keeps it from matching."""

    ruleId = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    position = serializers.IntegerField(min_value=0)
    action = serializers.ChoiceField(choices=ACTIONS)
    outcome = serializers.ChoiceField(choices=[outcome.value for outcome in Outcome])
    fired = serializers.BooleanField()
    distance = serializers.IntegerField(
        min_value=0,
        allow_null=True,
        help_text="The fewest tests that must change their result; null if the conditions never match.",
    )
    failed = FailedTest(many=True)
    conditions = ConditionTraceField()


class RequestExplanation(serializers.Serializer[Any]):
    """What a ruleset does with a request. The rules that are closest to a match come first."""

    ruleset = ChosenRuleset()
    decision = ExplainedDecision()
    rules = ExplainedRule(many=True)


@extend_schema_field(OpenApiTypes.OBJECT)
class DraftRuleField(serializers.JSONField):
    """A rule, which may have lint errors."""


class NewDraft(StrictSerializer):
    """A draft to make, or to replace another."""

    may_be_absent = True

    name = StrictCharField(required=False, allow_blank=True, max_length=200)
    rules = serializers.ListField(
        child=DraftRuleField(allow_null=True), required=False, help_text="Default: the current rules."
    )
    baseSeq = JsonIntegerField(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        help_text="The revision that the draft changes. Default: the current one.",
    )


class DraftBody(NewDraft):
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


class DraftHead(serializers.Serializer[Any]):
    """A draft without its rules."""

    draftId = serializers.UUIDField()
    tenantId = serializers.UUIDField()
    name = serializers.CharField(allow_blank=True)
    baseSeq = serializers.IntegerField(min_value=0, help_text="The revision that the draft changes.")
    lint = RuleLintResult(help_text="Of the last write of the draft.")
    createdAt = serializers.DateTimeField()
    createdBy = serializers.CharField()
    modifiedAt = serializers.DateTimeField()
    modifiedBy = serializers.CharField()


class Draft(DraftHead):
    """A ruleset that is not published."""

    rules = serializers.ListField(child=DraftRuleField(allow_null=True))


class DraftList(ItemList):
    """The drafts of a tenant."""

    drafts = DraftHead(many=True)


class DraftLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()


class DraftDifference(serializers.Serializer[Any]):
    """What publishing a draft would change; ``from`` is the current revision."""

    baseSeq = serializers.IntegerField(min_value=0)
    draftId = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=["rules"])
    _links = DraftLinks()
    added = Rule(many=True)
    removed = Rule(many=True)
    changed = RuleDifference(many=True)
    reordered = serializers.BooleanField(help_text="The rules that both have are in another order.")
    conflicts = serializers.ListField(
        child=serializers.CharField(),
        help_text="Ids of rules that the draft and somebody else have changed since the base.",
    )

    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.IntegerField(min_value=0), **super().get_fields()}


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
