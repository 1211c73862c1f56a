"""Serializers of reports, of the timeline and of the preview of an invalidation."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from analytics.reports.reading import MAX_DAYS
from analytics.reports.timeline import STEPS
from analytics.serializers.summaries import _Whole
from tenantadmin.lib.http.serializers import (
    DayField,
    OneOfField,
    StrictSerializer,
)

LEAK_GRADES = ["certain", "likely"]
TENANT_REVISION_KINDS = ["rules", "config"]
TIMELINE_STEPS = list(STEPS)


class ReportParameters(StrictSerializer):
    """The days of a report, both included."""

    to = DayField(help_text=f"The last day; at most {MAX_DAYS} days.")

    def get_fields(self) -> dict[str, Any]:
        return {"from": DayField(help_text="The first day."), **super().get_fields()}


class TimelineParameters(ReportParameters):
    step = OneOfField(choices=TIMELINE_STEPS, default="hour")


class ReportQuery(serializers.Serializer[Any]):
    name = serializers.CharField()
    sql = serializers.CharField(help_text="The statement that gave the numbers, to run yourself.")


class ReportHead(serializers.Serializer[Any]):
    to = serializers.DateField()
    queries = ReportQuery(many=True)

    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.DateField(), **super().get_fields()}


class StaleRule(serializers.Serializer[Any]):
    ruleId = serializers.CharField(allow_null=True)
    hits = _Whole()
    atRisk = _Whole()


class StaleFinding(serializers.Serializer[Any]):
    """Hits that were older than a change of a table. A hit that reads several tables counts in each."""

    ruleId = serializers.CharField(allow_null=True)
    table = serializers.CharField()
    changedBy = serializers.CharField(
        allow_null=True, help_text="The rule that the changing statement matched; null for none."
    )
    hits = _Whole()
    lastAt = serializers.IntegerField(help_text="The last such hit, in epoch milliseconds.")
    example = serializers.CharField(allow_null=True, help_text="The `logId` of the last such hit.")
    longestMs = _Whole(help_text="The longest time from a change to such a hit.")


class StaleReport(ReportHead):
    """Hits whose result may have been stale. Numbers cover hits with a known age."""

    hits = _Whole(help_text="All hits with a known age.")
    atRisk = _Whole(help_text="Those that read a table which changed after their result was made.")
    rules = StaleRule(many=True)
    findings = StaleFinding(many=True)
    caveats = serializers.ListField(child=serializers.CharField())


class LeakFinding(serializers.Serializer[Any]):
    """A statement whose cached results several users got."""

    grade = serializers.ChoiceField(
        choices=LEAK_GRADES,
        help_text="`certain`: it calls a function of the user or session. `likely`: a non-deterministic one.",
    )
    ruleId = serializers.CharField(allow_null=True)
    statement = serializers.CharField(allow_null=True)
    keys = _Whole(help_text="Cache keys that several users shared.")
    served = _Whole()
    users = serializers.ListField(child=serializers.CharField(), help_text="The first 10 in order.")
    userCount = _Whole()


class LeaksReport(ReportHead):
    keys = _Whole(help_text="All cache keys that were served.")
    sharedKeys = _Whole(help_text="Those served to several users, of any statement.")
    findings = LeakFinding(many=True)


class TimelineChange(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=TENANT_REVISION_KINDS)
    seq = _Whole()
    action = serializers.CharField()
    userId = serializers.CharField()
    changedAt = serializers.DateTimeField()


class TimelineBucket(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    hits = _Whole()
    misses = _Whole(help_text="MISS, BYPASS and PASSTHROUGH.")
    hitRate = serializers.FloatField(min_value=0, max_value=1, allow_null=True)
    changes = TimelineChange(many=True)
    markers = serializers.DictField(child=serializers.IntegerField(), help_text="Markers by target rule.")


class OutsideCounts(serializers.Serializer[Any]):
    hits = _Whole()
    misses = _Whole()


class Timeline(ReportHead):
    step = serializers.ChoiceField(choices=TIMELINE_STEPS)
    buckets = TimelineBucket(many=True)
    outside = OutsideCounts(help_text="Entries whose timestamp is null or outside of the days.")


class SameHour(serializers.Serializer[Any]):
    day = serializers.DateField()
    keys = _Whole()
    requests = _Whole()


class PreviewTarget(serializers.Serializer[Any]):
    """What a marker on a rule would end."""

    ruleId = serializers.CharField()
    entries = _Whole(help_text="Cached results that are still valid, by the log.")
    bytes = _Whole()
    refillMs = serializers.IntegerField(help_text="Warehouse time that the last executions took together.")
    lastStoreAt = serializers.DateTimeField(allow_null=True)
    sameHour = SameHour(many=True, help_text="What was asked in this hour of the last 4 same weekdays.")


class InvalidationPreview(serializers.Serializer[Any]):
    ruleId = serializers.CharField()
    at = serializers.DateTimeField()
    targets = PreviewTarget(many=True)
    queries = ReportQuery(many=True)
