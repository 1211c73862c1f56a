from __future__ import annotations

from django.urls import register_converter
from django.urls.converters import StringConverter

from accounts.routes import url_patterns
from analytics.api.alerts import AlertViewSet
from analytics.api.assessments import AssessmentViewSet
from analytics.api.digests import DigestMailViewSet, DigestViewSet, UnsubscribeViewSet, VerdictViewSet
from analytics.api.recommendations import RecommendationViewSet
from analytics.api.replays import ReplayViewSet
from analytics.api.reports import ExplainViewSet, ReportViewSet, SetupViewSet
from analytics.api.summaries import (
    PublishedQueryViewSet,
    SummaryViewSet,
    UserSummaryViewSet,
    VerificationViewSet,
)
from logs import urls as time_converters  # noqa: F401 - importing registers them


class UserIdConverter(StringConverter):
    """A user of the log as one percent-encoded segment.

    The server has already decoded the path, so ``%2F`` is a slash here. The user is everything between
    ``/users/`` and the numbers at the end, which have fixed widths.
    """

    regex = r"(?s:.*)"


class WeekConverter(StringConverter):
    """``01`` to ``53``, a week of ISO 8601."""

    regex = "0[1-9]|[1-4][0-9]|5[0-3]"


register_converter(WeekConverter, "week")
register_converter(UserIdConverter, "userid")

urlpatterns = url_patterns(
    PublishedQueryViewSet,
    ExplainViewSet,
    ReportViewSet,
    SetupViewSet,
    VerdictViewSet,
    VerificationViewSet,
    DigestViewSet,
    DigestMailViewSet,
    UnsubscribeViewSet,
    SummaryViewSet,
    UserSummaryViewSet,
    ReplayViewSet,
    AlertViewSet,
    RecommendationViewSet,
    AssessmentViewSet,
)
