"""Serializers of the summary documents. Contract: Summary records."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from logs.columns import CACHE_STATUSES


class _Whole(serializers.IntegerField):
    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, **options)


class HourActivity(serializers.Serializer[Any]):
    """One hour of day, UTC; ``hour`` 0 is midnight. Times in ms, sizes in bytes."""

    hour = serializers.IntegerField(min_value=0, max_value=23)
    queries = _Whole()
    totalHits = _Whole()
    cacheHits = _Whole()
    cacheMisses = _Whole()
    cachedBytes = _Whole()
    passThroughBytes = _Whole()
    cacheHitAverageResponseTime = _Whole(help_text="0 means no data.")
    cacheMissAverageResponseTime = _Whole(help_text="0 means no data.")
    users = _Whole()


class MonthHourActivity(HourActivity):
    """As in a daily summary, but the two split averages are null without data."""

    cacheHitAverageResponseTime = _Whole(allow_null=True, help_text="null means no data.")
    cacheMissAverageResponseTime = _Whole(allow_null=True, help_text="null means no data.")


class QueryRecord(serializers.Serializer[Any]):
    """One statement on one day: a rollup, with a sample of its latest execution."""

    queryHash = serializers.CharField(help_text="MD5 of the standardized SQL, lower-case hex.")
    statement = serializers.CharField()
    cacheKey = serializers.CharField(allow_null=True)
    matchedRule = serializers.CharField(allow_null=True)
    cacheStatus = serializers.ChoiceField(
        choices=CACHE_STATUSES,
        allow_null=True,
        help_text="Of the latest execution. A value outside the twelve statuses is shown as it was logged.",
    )
    cacheHits = _Whole()
    cacheMisses = _Whole(help_text="MISS + BYPASS + PASSTHROUGH.")
    responseCode = serializers.IntegerField(allow_null=True)
    averageResponseTime = _Whole()
    responseSize = serializers.IntegerField()
    count = _Whole()
    warehouseExecutionTimeMs = serializers.IntegerField(
        allow_null=True, help_text="Null if no execution reached the warehouse."
    )
    firstRequestTime = serializers.DateTimeField(allow_null=True)
    lastRequestTime = serializers.DateTimeField(allow_null=True)


class DailySummary(serializers.Serializer[Any]):
    """The requests of one day (UTC). Times in ms, sizes in bytes."""

    queries = QueryRecord(many=True)
    uniqueUsers = _Whole()
    cacheHits = _Whole()
    cacheMisses = _Whole(required=False)
    totalHits = _Whole()
    cachedBytes = _Whole(required=False)
    passThroughBytes = _Whole(required=False)
    averageResponseTime = _Whole()
    cacheHitAverageResponseTime = _Whole(required=False)
    cacheMissAverageResponseTime = _Whole(required=False)
    minResponseTime = _Whole()
    maxResponseTime = _Whole()
    hourlyActivity = HourActivity(many=True)


class MonthlySummary(serializers.Serializer[Any]):
    """The requests of one month (UTC). Times in ms, sizes in bytes."""

    month = serializers.IntegerField(min_value=1, max_value=12)
    totalQueries = _Whole()
    totalUsers = _Whole()
    totalCacheHits = _Whole()
    totalCacheMisses = _Whole(required=False)
    totalHits = _Whole()
    totalCachedBytes = _Whole(required=False)
    totalPassThroughBytes = _Whole(required=False)
    averageResponseTime = _Whole()
    cacheHitAverageResponseTime = _Whole(required=False)
    cacheMissAverageResponseTime = _Whole(required=False)
    minResponseTime = _Whole()
    maxResponseTime = _Whole()
    hourlyActivity = MonthHourActivity(many=True)


class DayActivity(serializers.Serializer[Any]):
    """One day of a year."""

    date = serializers.RegexField(r"^\d{4}/\d{2}/\d{2}$")
    queries = _Whole()
    users = _Whole()
    cacheHits = _Whole()
    totalHits = _Whole()
    dataTransfer = _Whole(help_text="Bytes served from cache.")
    cacheSize = _Whole(help_text="Bytes of new cache entries.")
    cacheElements = _Whole(help_text="New cache entries.")


class YearlySummary(serializers.Serializer[Any]):
    """The requests of one year, by day."""

    tenantSummaryReportID = serializers.CharField()
    tenantId = serializers.UUIDField()
    reportyears = serializers.ListField(child=serializers.CharField())
    totalUsers = _Whole()
    totalQueries = _Whole(help_text="Distinct statements that were stored or served.")
    totalCacheHits = _Whole()
    totalHits = _Whole()
    cacheSize = _Whole()
    cacheElements = _Whole()
    last365daysQueryActivity = DayActivity(many=True)


class RuleRecord(serializers.Serializer[Any]):
    """One rule in a year."""

    ruleId = serializers.CharField()
    ruleName = serializers.CharField(allow_null=True)
    queriesMatched = _Whole()
    totalExecutions = _Whole()
    cacheHits = _Whole()
    cacheMisses = _Whole()
    hitRate = serializers.FloatField(min_value=0, max_value=1)
    warehouseTimeSavedMs = serializers.IntegerField()


class RuleEffectiveness(serializers.Serializer[Any]):
    """What each rule did in a year."""

    totalQueries = _Whole()
    uncachedQueries = _Whole()
    bypassedQueries = _Whole()
    rules = RuleRecord(many=True)


class Opportunity(serializers.Serializer[Any]):
    """One statement, and the change that would help."""

    queryHash = serializers.CharField()
    statement = serializers.CharField()
    executionCount = _Whole()
    cacheMisses = _Whole()
    totalWarehouseTimeMs = serializers.IntegerField()
    matchedRule = serializers.CharField(allow_null=True)
    suggestedAction = serializers.CharField()


class CacheOpportunities(serializers.Serializer[Any]):
    """Statements that a change of the rules could serve from the cache."""

    repeatMisses = Opportunity(many=True)
    highCostUncached = Opportunity(many=True)
    lowHitRate = Opportunity(many=True)


class UserRecord(serializers.Serializer[Any]):
    """One user of the whole history."""

    userId = serializers.CharField()
    uniqueQueries = _Whole()
    cacheHits = _Whole()
    totalHits = _Whole()
    averageResponseTime = _Whole()
    minResponseTime = _Whole()
    maxResponseTime = _Whole()


class UsersSummary(serializers.Serializer[Any]):
    """All users of the whole history."""

    tenantId = serializers.UUIDField()
    generatedAt = serializers.DateTimeField()
    totalUsers = _Whole()
    users = UserRecord(many=True)
