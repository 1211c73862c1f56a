from __future__ import annotations

from accounts import converters  # noqa: F401 - importing registers them
from accounts.routes import url_patterns
from rules.api.cache_metadata import CacheMetadataViewSet
from rules.api.drafts import DraftViewSet
from rules.api.markers import MarkerViewSet
from rules.api.rules import ExplainViewSet, RulesetViewSet, RulesHistoryViewSet

urlpatterns = url_patterns(
    RulesetViewSet,
    DraftViewSet,
    ExplainViewSet,
    RulesHistoryViewSet,
    MarkerViewSet,
    CacheMetadataViewSet,
)
