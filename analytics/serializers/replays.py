"""Serializers of replays."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analytics.models import ReplayRun
from analytics.serializers.summaries import _Whole
from rules.serializers.rulesets import RuleBody
from tenantadmin.lib.http.serializers import (
    DayField,
    ItemList,
    JsonBooleanField,
    JsonIntegerField,
    StrictSerializer,
    StrictUuidField,
    TimestampField,
)

REPLAY_GRADES = ["good", "fair", "poor"]
REPLAY_STATES = ReplayRun.State.values


class ReplayGateway(StrictSerializer):
    """Whether the Gateway declines to use the cache by itself. What is absent is learned from the log."""

    nocache = JsonBooleanField(required=False, help_text="Requests with `cacheOverride` = `nocache`.")
    nonDeterministic = JsonBooleanField(
        required=False,
        help_text="Statements with non-deterministic functions, unless `cacheOverride` is `cache`.",
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


class Bounds(serializers.Serializer[Any]):
    """What is certain, what is likely, and what is possible where the log hides literals."""

    low = _Whole()
    likely = _Whole(allow_null=True)
    high = _Whole()


class RiskCount(serializers.Serializer[Any]):
    """Hits that may have been stale. Writes past the Gateway are invisible."""

    low = _Whole()
    high = _Whole()


class ReplayCounts(serializers.Serializer[Any]):
    """What a ruleset does with the requests of a replay. Times in ms, sizes in bytes."""

    requests = _Whole()
    hits = Bounds()
    staleHits = _Whole()
    misses = _Whole()
    missReasons = serializers.DictField(child=_Whole())
    holds = _Whole()
    bypassed = _Whole()
    blocked = _Whole()
    passed = _Whole()
    errors = _Whole()  # type: ignore[assignment]  # a member
    invalidationErrors = _Whole()
    revalidations = _Whole()
    savedMs = Bounds()
    spentMs = _Whole()
    hitBytes = _Whole()
    risk = RiskCount()
    fired = _Whole()
    markers = _Whole()


class ReplayRuleCounts(ReplayCounts):
    """What one rule does with the requests of a replay."""

    ruleId = serializers.CharField(allow_null=True, help_text="Null: requests without a rule.")


class ReplayRuleset(serializers.Serializer[Any]):
    total = ReplayCounts()
    rules = ReplayRuleCounts(many=True)


class LoggedReplayed(serializers.Serializer[Any]):
    logged = _Whole()
    replayed = _Whole()


class CalibratedRule(serializers.Serializer[Any]):
    ruleId = serializers.CharField()
    hits = LoggedReplayed()
    misses = LoggedReplayed()


class CalibrationCause(serializers.Serializer[Any]):
    logged = serializers.CharField()
    replayed = serializers.CharField()
    count = _Whole()
    why = serializers.CharField()


class Calibration(serializers.Serializer[Any]):
    """The log compared with the replay of the ruleset that was in force."""

    rows = _Whole()
    equal = _Whole()
    share = serializers.FloatField(allow_null=True)
    grade = serializers.ChoiceField(choices=REPLAY_GRADES)
    rules = CalibratedRule(many=True)
    causes = CalibrationCause(many=True)


class MovedRequests(serializers.Serializer[Any]):
    """Requests whose status changes from the current ruleset to the replayed one."""

    to = serializers.CharField()
    count = _Whole()
    examples = serializers.ListField(child=serializers.CharField(), help_text="`logId`s, at most three.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {"from": serializers.CharField(), **super().get_fields()}


class HourCost(serializers.Serializer[Any]):
    hour = serializers.IntegerField(min_value=0, max_value=23)
    extraMisses = _Whole()
    extraMs = _Whole()


class PublishCost(serializers.Serializer[Any]):
    """What leaving the cache behind costs, by hour of the day (UTC)."""

    byHour = HourCost(many=True)
    best = HourCost()
    now = HourCost()


class ReplayRows(serializers.Serializer[Any]):
    decidable = _Whole()
    outside = _Whole()
    exact = _Whole()
    known = _Whole()
    open = _Whole()


class ReplayWindow(serializers.Serializer[Any]):
    to = serializers.DateField()
    warmupDays = _Whole()
    daysLeftOut = serializers.ListField(child=serializers.DateField(), required=False)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {"from": serializers.DateField(), **super().get_fields()}


class LearnedGateway(serializers.Serializer[Any]):
    """Whether the Gateway declines by itself; null: not known, and both are within the bounds."""

    nocache = serializers.BooleanField(allow_null=True)
    nonDeterministic = serializers.BooleanField(allow_null=True)


class ReplaySubject(serializers.Serializer[Any]):
    """The replayed ruleset: a revision, a draft, or the digest of the rules that were sent."""

    seq = serializers.IntegerField(required=False, min_value=0)
    draftId = serializers.UUIDField(required=False)
    digest = serializers.CharField(required=False)


class EvidenceQuery(serializers.Serializer[Any]):
    name = serializers.CharField()
    sql = serializers.CharField()


class ReplaySummary(serializers.Serializer[Any]):
    """A replay without its result."""

    replayId = serializers.UUIDField()
    tenantId = serializers.UUIDField()
    state = serializers.ChoiceField(choices=REPLAY_STATES)
    progress = serializers.FloatField(min_value=0, max_value=1)
    subject = ReplaySubject()
    window = ReplayWindow()
    requestedBy = serializers.CharField()
    requestedAt = TimestampField()
    startedAt = TimestampField(allow_null=True)
    finishedAt = TimestampField(allow_null=True)
    error = serializers.CharField(allow_null=True)


class Replay(ReplaySummary):
    """A replay. What is not required is there when it is done; docs/replay.md defines every number."""

    rows = ReplayRows(required=False)
    gateway = LearnedGateway(required=False)
    calibration = Calibration(required=False)
    total = ReplayCounts(required=False)
    rules = ReplayRuleCounts(required=False, many=True)
    against = ReplayRuleset(required=False)
    moved = MovedRequests(required=False, many=True)
    publishCost = PublishCost(required=False)
    caveats = serializers.ListField(required=False, child=serializers.CharField())
    evidence = EvidenceQuery(required=False, many=True)


class ReplayList(ItemList):
    """The replays of a tenant."""

    replays = ReplaySummary(many=True)
