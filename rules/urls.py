from __future__ import annotations

from django.urls import include, path

from accounts.api import converters  # noqa: F401 - importing registers them
from rules.api.cache_metadata import CacheMetadataView
from rules.api.history import RulesDiffView, RulesHistoryView, RulesRestoreView, RulesRevisionView
from rules.api.markers import InvalidationsView, MarkersView, MarkerView
from rules.api.rules import RulesView, ValidateRulesView

#: What every Gateway polls.
polled = [path("config/tenants/<uuid:tenant>/rules", RulesView.as_view())]
# Grouped by their first segment, so that an address is compared with few others.
urlpatterns = [
    path(
        "config/",
        include(
            [
                path("tenants/<uuid:tenant>/rules/history", RulesHistoryView.as_view()),
                path("tenants/<uuid:tenant>/rules/history/diff", RulesDiffView.as_view()),
                path("tenants/<uuid:tenant>/rules/history/<seq:seq>", RulesRevisionView.as_view()),
                path("tenants/<uuid:tenant>/rules/history/<seq:seq>/restore", RulesRestoreView.as_view()),
                path("rules/validate", ValidateRulesView.as_view()),
            ]
        ),
    ),
    path(
        "tenants/",
        include(
            [
                path("<uuid:tenant>/invalidation-markers", MarkersView.as_view()),
                path("<uuid:tenant>/invalidation-markers/<str:marker>", MarkerView.as_view()),
                path("<uuid:tenant>/rules/<str:rule>/invalidations", InvalidationsView.as_view()),
                path("<uuid:tenant>/cachekeys/<str:cachekey>", CacheMetadataView.as_view()),
            ]
        ),
    ),
]
