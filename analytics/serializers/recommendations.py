"""Serializers of recommendations and of their effects."""

from __future__ import annotations

from accounts.serializers.history import CommentParameters
from analytics.advice.proposal import Variant
from analytics.models import Recommendation as RecommendationRow
from tenantadmin.lib.http.serializers import (
    DayField,
    OneOfField,
    StrictCharField,
    StrictSerializer,
)


class RecommendationParameters(StrictSerializer):
    """Which recommendations are listed."""

    state = OneOfField(choices=RecommendationRow.State.values, required=False)


class VariantParameters(StrictSerializer):
    """Which variant of a recommendation is drafted or accepted."""

    variant = OneOfField(
        choices=[variant.value for variant in Variant],
        required=False,
        help_text="One of `alternatives`. Default: the recommendation itself.",
    )


class AcceptParameters(VariantParameters, CommentParameters):
    pass


class DismissBody(StrictSerializer):
    """Why a recommendation is dismissed, and until when."""

    reason = StrictCharField(max_length=1000)
    until = DayField(required=False, help_text="The day on which it may come back. Default: never.")
