from __future__ import annotations

from accounts.routes import url_patterns
from logs import converters  # noqa: F401 - importing registers them
from logs.api.notifications import NotificationViewSet
from logs.api.query import QueryViewSet
from logs.api.tree import LogTreeViewSet

urlpatterns = url_patterns(
    LogTreeViewSet,
    NotificationViewSet,
    QueryViewSet,
)
