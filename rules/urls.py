from __future__ import annotations

from django.urls import path

from accounts import converters  # noqa: F401 - importing registers them
from rules.api.cache_metadata import CacheMetadataViewSet
from rules.api.drafts import DraftViewSet
from rules.api.explain import ExplainViewSet
from rules.api.history import RulesHistoryViewSet
from rules.api.markers import MarkerViewSet
from rules.api.rules import RulesetViewSet

_RULES = "config/tenants/<uuid:tenant>/rules"
_TENANT = "tenants/<uuid:tenant>"

urlpatterns = [
    path(
        _RULES,
        RulesetViewSet.as_view({"get": "get_tenant_rules", "put": "replace_tenant_rules"}),
        name="rules",
    ),
    path("config/rules/validate", RulesetViewSet.as_view({"post": "validate_rules"}), name="validate-rules"),
    path(
        f"{_RULES}/drafts",
        DraftViewSet.as_view({"get": "list_drafts", "post": "create_draft"}),
        name="rules-drafts",
    ),
    path(
        f"{_RULES}/drafts/<uuid:draft>",
        DraftViewSet.as_view({"get": "get_draft", "put": "replace_draft", "delete": "delete_draft"}),
        name="rules-draft",
    ),
    path(
        f"{_RULES}/drafts/<uuid:draft>/diff",
        DraftViewSet.as_view({"get": "diff_draft"}),
        name="rules-draft-diff",
    ),
    path(
        f"{_RULES}/drafts/<uuid:draft>/publish",
        DraftViewSet.as_view({"post": "publish_draft"}),
        name="rules-draft-publish",
    ),
    path(f"{_RULES}/explain", ExplainViewSet.as_view({"post": "explain_request"}), name="rules-explain"),
    path(f"{_RULES}/history", RulesHistoryViewSet.as_view({"get": "list_history"}), name="rules-history"),
    path(f"{_RULES}/blame", RulesHistoryViewSet.as_view({"get": "blame"}), name="rules-blame"),
    path(f"{_RULES}/history/diff", RulesHistoryViewSet.as_view({"get": "diff"}), name="rules-diff"),
    path(
        f"{_RULES}/history/<seq:seq>",
        RulesHistoryViewSet.as_view({"get": "get_revision"}),
        name="rules-revision",
    ),
    path(
        f"{_RULES}/history/<seq:seq>/restore",
        RulesHistoryViewSet.as_view({"post": "restore"}),
        name="rules-restore",
    ),
    path(
        f"{_TENANT}/invalidation-markers",
        MarkerViewSet.as_view({"get": "list_markers", "post": "create_marker"}),
        name="markers",
    ),
    path(
        f"{_TENANT}/invalidation-markers/<str:marker>",
        MarkerViewSet.as_view({"get": "get_marker", "put": "replace_marker", "delete": "delete_marker"}),
        name="marker",
    ),
    path(
        f"{_TENANT}/invalidations",
        MarkerViewSet.as_view({"post": "invalidate_tables"}),
        name="table-invalidations",
    ),
    path(
        f"{_TENANT}/rules/<str:rule>/invalidations",
        MarkerViewSet.as_view({"post": "invalidate_rules"}),
        name="invalidations",
    ),
    path("config/invalidation-markers", MarkerViewSet.as_view({"get": "poll_markers"}), name="marker-feed"),
    path(
        f"{_TENANT}/cachekeys",
        CacheMetadataViewSet.as_view({"get": "list_cache_metadata", "put": "replace_many_cache_metadata"}),
        name="cache-keys",
    ),
    path(
        f"{_TENANT}/cachekeys/<str:cachekey>",
        CacheMetadataViewSet.as_view(
            {
                "get": "get_cache_metadata",
                "put": "replace_cache_metadata",
                "delete": "delete_cache_metadata",
            }
        ),
        name="cache-metadata",
    ),
]
