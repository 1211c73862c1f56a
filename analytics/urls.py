from __future__ import annotations

from accounts.routes import url_patterns
from analytics import converters  # noqa: F401 - importing registers them
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
from logs import urls as time_converters  # noqa: F401 - likewise

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
