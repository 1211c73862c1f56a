"""Serializers of recommendations and of their effects."""

from __future__ import annotations

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


class DismissBody(StrictSerializer):
    """Why a recommendation is dismissed, and until when."""

    reason = StrictCharField(max_length=1000)
    until = DayField(required=False, help_text="The day on which it may come back. Default: never.")
