"""Serializers of the summary documents, for the contract. Contract: "Summary records"."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analytics.advice.proposal import Kind as AdviceKind
from analytics.digest.facts import NameKind, Unit
from analytics.models import DigestFrequency, Kind, ReplayRun
from analytics.models import Effect as EffectRow
from analytics.models import Mining as MiningRow
from analytics.models import ModelExchange as StoredExchange
from analytics.models import Recommendation as RecommendationRow
from analytics.published.documents import MAX_DIFFERENCES
from analytics.published.verify import InvalidKey, check_key
from analytics.reports.reading import MAX_DAYS
from analytics.reports.timeline import STEPS
from logs.columns import CACHE_STATUSES
from rules.serializers import ChosenRulesBody, RequestExplanation, Rule, RuleBody
from tenantadmin.http.serializers import (
    DayField,
    ItemList,
    JsonBooleanField,
    JsonIntegerField,
    Link,
    OneOfField,
    StrictCharField,
    StrictSerializer,
    StrictUuidField,
    TimestampField,
)

# Fields have the names of the JSON members.
# ruff: noqa: N815


DIGEST_KINDS = ["day", "week"]
DIGEST_UNITS = [unit.value for unit in Unit]
LEAK_GRADES = ["certain", "likely"]
MISS_REASONS = ["restart", "ttl-expired", "invalidation-marker", "not-stored", "no-cache-entry"]
REPLAY_GRADES = ["good", "fair", "poor"]
REPLAY_STATES = ReplayRun.State.values
TENANT_REVISION_KINDS = ["rules", "config"]
TIMELINE_STEPS = list(STEPS)


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
        choices=CACHE_STATUSES, allow_null=True, help_text="Of the latest execution."
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


class PublishedQuerySerializer(serializers.Serializer[Any]):
    """A query over `proxy_logs`, and the fields that it gives."""

    name = serializers.CharField(
        help_text="The document, with the array in it if the rows are the elements of an array."
    )
    about = serializers.CharField()
    text = serializers.CharField(help_text="SQL. The parameters are written as `$first` and `$last`.")
    parameters = serializers.ListField(
        child=serializers.CharField(), help_text="`first` and `last`: days (`YYYY-MM-DD`), both included."
    )
    fields = serializers.ListField(child=serializers.CharField())  # type: ignore[assignment]  # a member


class PublishedQueries(serializers.Serializer[Any]):
    queries = PublishedQuerySerializer(many=True)


class VerificationBody(StrictSerializer):
    """Which document to verify."""

    document = OneOfField(choices=Kind.values)
    period = StrictCharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=10,
        help_text="`2026-03-01`, `2026-03` or `2026`; for `users`, which covers the whole history, empty.",
    )
    userId = StrictCharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="`userName` of the log, for the day, month or year of one user.",
    )

    def validate(self, attrs: Any) -> Any:
        try:
            check_key(Kind(attrs["document"]), attrs["period"], is_of_user="userId" in attrs)
        except InvalidKey as error:
            detail = serializers.ErrorDetail(str(error), "invalid")
            raise serializers.ValidationError({error.field: [detail]}) from error
        return attrs


class UnequalValue(serializers.Serializer[Any]):
    """A value of the document that is not what the query gives. Null can also mean absent."""

    path = serializers.CharField(help_text="JSON Pointer into the document.")
    document = serializers.JSONField(allow_null=True)
    query = serializers.JSONField(allow_null=True)


class RunQuerySerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    sql = serializers.CharField(help_text="The statement to run yourself.")
    ms = _Whole()


class VerificationAnswer(serializers.Serializer[Any]):
    """Whether a document says what SQL over the log says."""

    equal = serializers.BooleanField()
    fields = _Whole(help_text="How many values were compared.")  # type: ignore[assignment]  # a member
    unequalCount = _Whole()
    unequal = UnequalValue(many=True, help_text=f"The first {MAX_DIFFERENCES} values that differ.")
    queries = RunQuerySerializer(many=True)


class ExplainLoggedBody(ChosenRulesBody):
    """An entry of the log, and which rules decide it: by default those in force at its timestamp."""

    logId = StrictCharField(max_length=1000, trim_whitespace=False)
    day = DayField(help_text="The day of the entry in `proxy_logs`.")


class LoggedRequest(serializers.Serializer[Any]):
    """What the log says of the request; columns of `proxy_logs`."""

    logId = serializers.CharField()
    timestamp = serializers.IntegerField(allow_null=True)
    cacheStatus = serializers.ChoiceField(choices=CACHE_STATUSES, allow_null=True)
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


class DigestFact(serializers.Serializer[Any]):
    """A number of a digest."""

    id = serializers.CharField(help_text="Texts refer to it as `{id}`.")
    value = serializers.FloatField(allow_null=True)
    unit = serializers.ChoiceField(choices=DIGEST_UNITS)
    sql = serializers.CharField(help_text="The statement over `proxy_logs` that gives the value.")


class DigestName(serializers.Serializer[Any]):
    """Something that a text refers to and that is not measured."""

    id = serializers.CharField(help_text="Texts refer to it as `{id}`.")
    kind = serializers.ChoiceField(choices=[kind.value for kind in NameKind])
    value = serializers.CharField(allow_blank=True)
    href = serializers.CharField(allow_null=True, help_text="Where to read more.")


class DigestSection(serializers.Serializer[Any]):
    id = serializers.CharField()
    heading = serializers.CharField()
    text = serializers.CharField(help_text="Sentences, one per line, with `{id}` for each fact and name.")
    template = serializers.CharField(
        help_text="The text of this service; it differs from `text` where a language model wrote that."
    )


class DigestLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()


class DigestDocument(serializers.Serializer[Any]):
    """What happened in a day or a week, each number with its SQL."""

    _links = DigestLinks()
    tenantId = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=DIGEST_KINDS)
    period = serializers.CharField(help_text="`2026-03-01`, or `2026-W09`.")
    to = serializers.DateField()
    quiet = serializers.BooleanField(help_text="Nothing was unusual: one section of one sentence.")
    rewritten = serializers.BooleanField(help_text="A language model wrote the texts.")
    madeAt = TimestampField()
    facts = DigestFact(many=True)
    names = DigestName(many=True)
    sections = DigestSection(many=True)

    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.DateField(), **super().get_fields()}


class DigestPreferenceBody(StrictSerializer):
    """Which digests to get."""

    frequency = OneOfField(choices=DigestFrequency.values)


class DigestPreference(serializers.Serializer[Any]):
    """Which digests of a tenant a user gets by mail."""

    tenantId = serializers.UUIDField()
    tenantName = serializers.CharField()
    frequency = serializers.ChoiceField(choices=DigestFrequency.values)


class DigestPreferences(ItemList):
    digests = DigestPreference(many=True)


class UnsubscribeBody(StrictSerializer):
    """What RFC 8058 has mail programs send, as a form."""

    may_be_absent = True

    def get_fields(self) -> dict[str, Any]:
        return {"List-Unsubscribe": StrictCharField(required=False, help_text="`One-Click`.")}


class UnsubscribeParameters(StrictSerializer):
    """The signed token of a mail."""

    t = StrictCharField(max_length=1000, required=False, allow_blank=True, help_text="The token of the link.")


class ModelExchange(serializers.Serializer[Any]):
    """One request to the language model, and its answer."""

    id = serializers.IntegerField()
    period = serializers.CharField(help_text="Of the digest.")
    sentAt = TimestampField()
    address = serializers.CharField(help_text="Where it was sent.")
    request = serializers.JSONField(help_text="The whole body that was sent.")
    answer = serializers.CharField(allow_blank=True)
    outcome = serializers.ChoiceField(choices=StoredExchange.Outcome.values)
    reason = serializers.CharField(allow_null=True, help_text="Why it was refused, or what failed.")


class ModelExchanges(serializers.Serializer[Any]):
    exchanges = ModelExchange(many=True)


class RecommendationParameters(StrictSerializer):
    """Which recommendations are listed."""

    state = OneOfField(choices=RecommendationRow.State.values, required=False)


class DismissBody(StrictSerializer):
    """Why a recommendation is dismissed, and until when."""

    reason = StrictCharField(max_length=1000)
    until = DayField(required=False, help_text="The day on which it may come back. Default: never.")


class RuleEdit(serializers.Serializer[Any]):
    """A change of the rules: a rule is added before another one (null: at the end), replaced or moved."""

    op = serializers.ChoiceField(choices=["insert", "replace", "remove", "move"])
    ruleId = serializers.CharField()
    before = serializers.CharField(required=False, allow_null=True)
    rule = Rule(required=False)


class EvidenceRows(EvidenceQuery):
    """A statement over ``proxy_logs``, and what it gave when the recommendation was made."""

    rows = serializers.ListField(child=serializers.DictField())


class SignedBounds(serializers.Serializer[Any]):
    low = serializers.IntegerField()
    likely = serializers.IntegerField(allow_null=True)
    high = serializers.IntegerField()


class SignedRisk(serializers.Serializer[Any]):
    low = serializers.IntegerField()
    high = serializers.IntegerField()


class PredictedGain(serializers.Serializer[Any]):
    """The totals with the recommendation less those without it. Times in ms, sizes in bytes."""

    hits = SignedBounds()
    savedMs = SignedBounds()
    misses = serializers.IntegerField()
    spentMs = serializers.IntegerField()
    hitBytes = serializers.IntegerField()
    risk = SignedRisk()


class Prediction(serializers.Serializer[Any]):
    """A replay of the rules with the recommendation (``total``) and without it (``against``)."""

    total = ReplayCounts()
    against = ReplayCounts()
    gain = PredictedGain()


class AdviceWindow(serializers.Serializer[Any]):
    """The days, both included."""

    to = serializers.DateField()

    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.DateField(), **super().get_fields()}


class RecommendationBase(serializers.Serializer[Any]):
    """The revision of the rules and the days that it was made from."""

    seq = serializers.IntegerField(min_value=0)
    window = AdviceWindow()


class Recommendation(serializers.Serializer[Any]):
    """A change of the rules that the service recommends. docs/advice.md says how it is found."""

    recommendationId = serializers.UUIDField()
    tenantId = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=[kind.value for kind in AdviceKind])
    state = serializers.ChoiceField(choices=RecommendationRow.State.values)
    title = serializers.CharField()
    why = serializers.ListField(child=serializers.CharField())
    rules = Rule(many=True, help_text="The rules that are new or changed.")
    patch = RuleEdit(many=True)
    evidence = EvidenceRows(many=True)
    predicted = Prediction()
    fingerprint = serializers.CharField(help_text="The same for the same kind and subject.")
    basedOn = RecommendationBase()
    minedAt = TimestampField()
    draftId = serializers.UUIDField(allow_null=True)
    decidedBy = serializers.CharField(allow_null=True)
    decidedAt = TimestampField(allow_null=True)
    reason = serializers.CharField(allow_null=True, help_text="Why it was dismissed.")
    until = serializers.DateField(allow_null=True)
    acceptedSeq = serializers.IntegerField(
        allow_null=True, min_value=0, help_text="The revision of the rules that has it."
    )


class NotProposed(serializers.Serializer[Any]):
    """Requests that go to the warehouse, and for which nothing is proposed."""

    code = serializers.CharField()
    why = serializers.CharField()
    statements = _Whole()
    requests = _Whole()
    warehouseMs = _Whole()
    examples = serializers.ListField(child=serializers.CharField(), help_text="The dearest statements.")


class MiningBase(serializers.Serializer[Any]):
    seq = serializers.IntegerField(min_value=0)
    window = AdviceWindow(allow_null=True)


class Considered(serializers.Serializer[Any]):
    scopes = _Whole()
    options = _Whole(help_text="Scopes with lifetimes, with and without an invalidating rule.")


class MiningReport(serializers.Serializer[Any]):
    """What a search looked at. What is not required is absent if there are no logs."""

    basedOn = MiningBase()
    notProposed = NotProposed(many=True)
    rows = ReplayRows(required=False)
    gateway = LearnedGateway(required=False)
    calibration = Calibration(required=False)
    caveats = serializers.ListField(child=serializers.CharField(), required=False)
    warehouseMs = _Whole(required=False, help_text="What the warehouse spends under the current rules.")
    considered = Considered(required=False)


class MiningState(serializers.Serializer[Any]):
    """The last search for recommendations."""

    state = serializers.ChoiceField(choices=MiningRow.State.values)
    progress = serializers.FloatField(min_value=0, max_value=1)
    requestedBy = serializers.CharField()
    requestedAt = TimestampField()
    finishedAt = TimestampField(allow_null=True)
    error = serializers.CharField(allow_null=True)
    report = MiningReport(allow_null=True, help_text="Of the last search that was done.")


class RecommendationList(ItemList):
    mining = MiningState(allow_null=True, help_text="Null before the first search.")
    recommendations = Recommendation(many=True)


class EffectMeasure(serializers.Serializer[Any]):
    """One measure over the period.

    ``withoutIt`` replays the rules before the recommendation, and ``measured`` is ``logged`` less that.
    ``error`` is how far the replay of the rules with it is from the log. ``predicted`` is the prediction for
    as many days. ``beforeAfter`` compares with the days before, and is not adjusted for traffic.
    """

    logged = _Whole()
    withoutIt = Bounds()
    measured = serializers.IntegerField()
    error = serializers.IntegerField()
    predicted = serializers.IntegerField()
    beforeAfter = serializers.IntegerField(allow_null=True)
    inconclusive = serializers.BooleanField(help_text="The error is larger than what was measured.")


class EffectPeriod(AdviceWindow):
    days = _Whole()


class RecommendationEffect(serializers.Serializer[Any]):
    """What an accepted recommendation did. ``hits`` and the rest are absent before 3 whole days."""

    recommendationId = serializers.UUIDField()
    state = serializers.ChoiceField(choices=EffectRow.State.values)
    measuredAt = TimestampField(allow_null=True)
    period = EffectPeriod(allow_null=True)
    closedBy = serializers.IntegerField(allow_null=True, help_text="The revision of the rules that ended it.")
    hits = EffectMeasure(required=False)
    savedMs = EffectMeasure(required=False)
    caveats = serializers.ListField(child=serializers.CharField(), required=False)
