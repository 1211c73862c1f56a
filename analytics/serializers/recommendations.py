"""Serializers of recommendations and of their effects."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from analytics.advice.proposal import Kind as AdviceKind
from analytics.models import Effect as EffectRow
from analytics.models import Mining as MiningRow
from analytics.models import Recommendation as RecommendationRow
from analytics.serializers.replays import (
    Bounds,
    Calibration,
    EvidenceQuery,
    LearnedGateway,
    ReplayCounts,
    ReplayRows,
)
from analytics.serializers.summaries import _Whole
from rules.serializers.rulesets import Rule
from tenantadmin.lib.http.serializers import (
    DayField,
    ItemList,
    OneOfField,
    StrictCharField,
    StrictSerializer,
    TimestampField,
)


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
    replayId = serializers.UUIDField(
        allow_null=True,
        help_text="The replay of the rules with it. Null if it was removed, or long after the decision.",
    )
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
