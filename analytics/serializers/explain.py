"""Serializers of the explanation of a logged request."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from analytics.serializers.summaries import _Whole
from logs.columns import CACHE_STATUSES
from rules.serializers.explain import ChosenRulesBody, RequestExplanation
from tenantadmin.lib.http.serializers import (
    DayField,
    StrictCharField,
)

MISS_REASONS = ["restart", "ttl-expired", "invalidation-marker", "not-stored", "no-cache-entry"]


class ExplainLoggedBody(ChosenRulesBody):
    """An entry of the log, and which rules decide it: by default those in force at its timestamp."""

    logId = StrictCharField(max_length=1000, trim_whitespace=False)
    day = DayField(help_text="The day of the entry in `proxy_logs`.")


class LoggedRequest(serializers.Serializer[Any]):
    """What the log says of the request; columns of `proxy_logs`."""

    logId = serializers.CharField()
    timestamp = serializers.IntegerField(allow_null=True)
    cacheStatus = serializers.ChoiceField(
        choices=CACHE_STATUSES,
        allow_null=True,
        help_text="A value outside the twelve statuses is shown as it was logged.",
    )
    missReason = serializers.CharField(allow_null=True)
    matchedRule = serializers.CharField(allow_null=True)
    matchedRuleName = serializers.CharField(allow_null=True)
    cacheKey = serializers.CharField(allow_null=True)
    cacheAgeSeconds = serializers.IntegerField(allow_null=True)
    cacheTtlSeconds = serializers.IntegerField(allow_null=True)
    warehouseExecutionTimeMs = serializers.IntegerField(allow_null=True)
    standardizedSql = serializers.CharField(allow_null=True)


class Disagreement(serializers.Serializer[Any]):
    """The rule that the log names is not the one that decides. Null means no rule."""

    logged = serializers.CharField(allow_null=True)
    traced = serializers.CharField(allow_null=True)


class EntryReference(serializers.Serializer[Any]):
    logId = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField(allow_null=True)


class NearestEntry(EntryReference):
    parameterValues = serializers.CharField(allow_null=True)


class RestartRevision(serializers.Serializer[Any]):
    seq = _Whole()
    changedAt = serializers.DateTimeField()


class MissMarker(serializers.Serializer[Any]):
    markerId = serializers.CharField()
    invalidatedAt = serializers.DateTimeField()
    invalidatedBy = serializers.DictField()


class MissExplanation(serializers.Serializer[Any]):
    """Why a `MISS` was one, with the evidence for this reason."""

    reason = serializers.ChoiceField(choices=MISS_REASONS)
    reconstructed = serializers.BooleanField(help_text="True if the log gives no reason.")
    lastStore = EntryReference(required=False, help_text="The last entry that stored this result.")
    revision = RestartRevision(required=False, help_text="The write of the rules that left the cache behind.")
    cacheKeyVersion = serializers.IntegerField(
        required=False, help_text="The version of cache keys that left the cache behind."
    )
    expiredAt = serializers.DateTimeField(required=False)
    ttlSeconds = _Whole(required=False)
    ttlNeeded = _Whole(required=False, help_text="The shortest TTL, in seconds, that would have been a hit.")
    marker = MissMarker(required=False)
    lastExecution = EntryReference(required=False, help_text="It failed, and stored nothing.")
    firstInDays = _Whole(
        required=False, allow_null=True, help_text="No earlier store was found in so many days."
    )
    nearest = NearestEntry(
        required=False,
        allow_null=True,
        help_text="The last store of the same statement and rule with other values.",
    )


class LoggedExplanationAnswer(RequestExplanation):
    """What the rules do with a logged request, beside what the log says of it."""

    logged = LoggedRequest()
    disagreement = Disagreement(allow_null=True)
    miss = MissExplanation(allow_null=True, help_text="Null if the entry is no `MISS`.")
