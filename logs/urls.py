from __future__ import annotations

from django.urls import path

from logs import converters  # noqa: F401 - importing registers them
from logs.api.notifications import NotificationViewSet
from logs.api.query import QueryViewSet
from logs.api.tree import LogTreeViewSet

_TREE = "tenants/<uuid:tenant>/logs"
_LOGS = f"{_TREE}/<year:year>"

urlpatterns = [
    path(_TREE, LogTreeViewSet.as_view({"get": "list_log_years"}), name="log-years"),
    path(_LOGS, LogTreeViewSet.as_view({"get": "list_log_months"}), name="log-months"),
    path(f"{_LOGS}/<month:month>", LogTreeViewSet.as_view({"get": "list_log_days"}), name="log-days"),
    path(
        f"{_LOGS}/<month:month>/<day:day>",
        LogTreeViewSet.as_view({"get": "list_log_hours"}),
        name="log-hours",
    ),
    path(
        f"{_LOGS}/<month:month>/<day:day>/<hour:hour>",
        LogTreeViewSet.as_view({"get": "list_log_files"}),
        name="log-files",
    ),
    path(
        f"{_LOGS}/<month:month>/<day:day>/<hour:hour>/<logfile:file>",
        LogTreeViewSet.as_view({"get": "get_log_object"}),
        name="log-object",
    ),
    path(
        f"{_TREE}/notifications",
        NotificationViewSet.as_view({"post": "notify_logs"}),
        name="log-notifications",
    ),
    path("tenants/<uuid:tenant>/query", QueryViewSet.as_view({"post": "query_logs"}), name="query"),
    path(
        "tenants/<uuid:tenant>/query/schema",
        QueryViewSet.as_view({"get": "get_query_schema"}),
        name="query-schema",
    ),
]
