from __future__ import annotations

from django.urls import path

from analytics import converters  # noqa: F401 - importing registers them
from analytics.api.alerts import AlertViewSet
from analytics.api.digests import DigestMailViewSet, DigestViewSet, UnsubscribeViewSet
from analytics.api.explain import ExplainViewSet
from analytics.api.published import PublishedQueryViewSet, VerificationViewSet
from analytics.api.recommendations import RecommendationViewSet
from analytics.api.replays import ReplayViewSet
from analytics.api.reports import ReportViewSet
from analytics.api.setup import SetupViewSet
from analytics.api.summaries import SummaryViewSet, UserSummaryViewSet
from analytics.api.verdict import VerdictViewSet
from logs import converters as time_converters  # noqa: F401 - likewise

_SUMMARIES = "tenants/<uuid:tenant>/summaries/<year:year>"
_DIGESTS = "tenants/<uuid:tenant>/digests/<year:year>"
_RECOMMENDATION = "tenants/<uuid:tenant>/recommendations/<uuid:recommendationId>"
_ALERT = "tenants/<uuid:tenant>/alerts/<uuid:alertId>"
_USER = "tenants/<uuid:tenant>/users/<userid:userId>"

urlpatterns = [
    path(
        "analytics/queries",
        PublishedQueryViewSet.as_view({"get": "list_published_queries"}),
        name="published-queries",
    ),
    path(
        "tenants/<uuid:tenant>/explain",
        ExplainViewSet.as_view({"post": "explain_logged_request"}),
        name="explain",
    ),
    path(
        "tenants/<uuid:tenant>/reports/stale",
        ReportViewSet.as_view({"get": "get_stale_report"}),
        name="report-stale",
    ),
    path(
        "tenants/<uuid:tenant>/reports/leaks",
        ReportViewSet.as_view({"get": "get_leaks_report"}),
        name="report-leaks",
    ),
    path("tenants/<uuid:tenant>/savings", ReportViewSet.as_view({"get": "get_savings"}), name="savings"),
    path("tenants/<uuid:tenant>/setup", SetupViewSet.as_view({"get": "get_setup"}), name="setup"),
    path("tenants/<uuid:tenant>/verdict", VerdictViewSet.as_view({"get": "get_verdict"}), name="verdict"),
    path("tenants/weeks", VerdictViewSet.as_view({"get": "list_tenant_weeks"}), name="tenant-weeks"),
    path("tenants/<uuid:tenant>/requests", ReportViewSet.as_view({"get": "list_requests"}), name="requests"),
    path("tenants/<uuid:tenant>/activity", ReportViewSet.as_view({"get": "get_activity"}), name="activity"),
    path(
        "tenants/<uuid:tenant>/activity/rules",
        ReportViewSet.as_view({"get": "get_rule_activity"}),
        name="rule-activity",
    ),
    path(
        "tenants/<uuid:tenant>/statements",
        ReportViewSet.as_view({"get": "list_statements"}),
        name="statements",
    ),
    path("tenants/<uuid:tenant>/timeline", ReportViewSet.as_view({"get": "get_timeline"}), name="timeline"),
    path(
        "tenants/<uuid:tenant>/invalidations/preview",
        ReportViewSet.as_view({"post": "preview_table_invalidation"}),
        name="table-invalidations-preview",
    ),
    path(
        "tenants/<uuid:tenant>/rules/<str:rule>/invalidations/preview",
        ReportViewSet.as_view({"post": "preview_invalidation"}),
        name="invalidations-preview",
    ),
    path(
        "tenants/<uuid:tenant>/verifications",
        VerificationViewSet.as_view({"post": "verify_document"}),
        name="verifications",
    ),
    path(
        f"{_DIGESTS}/<month:month>/<day:day>",
        DigestViewSet.as_view({"get": "get_daily_digest"}),
        name="digest-day",
    ),
    path(
        f"{_DIGESTS}/weeks/<week:week>",
        DigestViewSet.as_view({"get": "get_weekly_digest"}),
        name="digest-week",
    ),
    path(
        "tenants/<uuid:tenant>/model-exchanges",
        DigestViewSet.as_view({"get": "list_model_exchanges"}),
        name="model-exchanges",
    ),
    path(
        "users/<email:email>/digests",
        DigestMailViewSet.as_view({"get": "list_digest_preferences"}),
        name="user-digests",
    ),
    path(
        "users/<email:email>/digests/<uuid:tenant>",
        DigestMailViewSet.as_view({"put": "set_digest_preference"}),
        name="user-digest",
    ),
    path(
        "digests/unsubscribe",
        UnsubscribeViewSet.as_view({"get": "show_unsubscribe", "post": "unsubscribe"}),
        name="digest-unsubscribe",
    ),
    path(_SUMMARIES, SummaryViewSet.as_view({"get": "get_yearly_summary"}), name="summary-year"),
    path(
        f"{_SUMMARIES}/rules", SummaryViewSet.as_view({"get": "get_rule_effectiveness"}), name="summary-rules"
    ),
    path(
        f"{_SUMMARIES}/opportunities",
        SummaryViewSet.as_view({"get": "get_cache_opportunities"}),
        name="summary-opportunities",
    ),
    path(
        f"{_SUMMARIES}/<month:month>",
        SummaryViewSet.as_view({"get": "get_monthly_summary"}),
        name="summary-month",
    ),
    path(
        f"{_SUMMARIES}/<month:month>/<day:day>",
        SummaryViewSet.as_view({"get": "get_daily_summary"}),
        name="summary-day",
    ),
    path(
        "tenants/<uuid:tenant>/users",
        SummaryViewSet.as_view({"get": "get_users_summary"}),
        name="summary-users",
    ),
    path(
        f"{_USER}/<year:year>/<month:month>/<day:day>",
        UserSummaryViewSet.as_view({"get": "get_user_daily_summary"}),
        name="user-summary-day",
    ),
    path(
        f"{_USER}/<year:year>/<month:month>",
        UserSummaryViewSet.as_view({"get": "get_user_monthly_summary"}),
        name="user-summary-month",
    ),
    path(
        f"{_USER}/<year:year>",
        UserSummaryViewSet.as_view({"get": "get_user_yearly_summary"}),
        name="user-summary-year",
    ),
    path(
        "tenants/<uuid:tenant>/replays",
        ReplayViewSet.as_view({"get": "list_replays", "post": "request_replay"}),
        name="replays",
    ),
    path(
        "tenants/<uuid:tenant>/replays/<uuid:replayId>",
        ReplayViewSet.as_view({"get": "get_replay", "delete": "cancel_replay"}),
        name="replay",
    ),
    path(
        "tenants/<uuid:tenant>/alerts",
        AlertViewSet.as_view({"get": "list_alerts", "post": "create_alert"}),
        name="alerts",
    ),
    path(
        "tenants/<uuid:tenant>/alerts/history",
        AlertViewSet.as_view({"get": "list_alert_history"}),
        name="alert-history",
    ),
    path(
        _ALERT,
        AlertViewSet.as_view({"get": "get_alert", "put": "replace_alert", "delete": "delete_alert"}),
        name="alert",
    ),
    path(f"{_ALERT}/test", AlertViewSet.as_view({"post": "test_alert"}), name="alert-test"),
    path(
        f"{_ALERT}/deliveries",
        AlertViewSet.as_view({"get": "list_alert_deliveries"}),
        name="alert-deliveries",
    ),
    path(
        "tenants/<uuid:tenant>/recommendations",
        RecommendationViewSet.as_view({"get": "list_recommendations", "post": "request_recommendations"}),
        name="recommendations",
    ),
    path(
        _RECOMMENDATION,
        RecommendationViewSet.as_view({"get": "get_recommendation"}),
        name="recommendation",
    ),
    *(
        path(
            f"{_RECOMMENDATION}/{action}",
            RecommendationViewSet.as_view({"post": f"{action}_recommendation"}),
            name=f"recommendation-{action}",
        )
        for action in ("draft", "accept", "dismiss", "reopen")
    ),
    path(
        f"{_RECOMMENDATION}/effect",
        RecommendationViewSet.as_view({"get": "get_recommendation_effect"}),
        name="recommendation-effect",
    ),
]
