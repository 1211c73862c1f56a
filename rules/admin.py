"""Admin pages of rulesets, markers and cache metadata."""

from __future__ import annotations

from django.contrib import admin

from rules.models import CacheMetadata, Marker, Ruleset
from tenantadmin.http.admin import ReadOnlyAdmin


@admin.register(Ruleset)
class RulesetAdmin(ReadOnlyAdmin):
    list_display = ("tenant", "seq", "cache_bust", "modified_at")
    list_select_related = ("tenant",)
    search_fields = ("tenant__name", "tenant__id", "cache_bust")


@admin.register(Marker)
class MarkerAdmin(ReadOnlyAdmin):
    list_display = ("marker_id", "tenant", "target_rule_id", "invalidated_at", "expires_at", "removed_at")
    list_select_related = ("tenant",)
    search_fields = ("marker_id", "target_rule_id", "tenant__name", "tenant__id")


@admin.register(CacheMetadata)
class CacheMetadataAdmin(ReadOnlyAdmin):
    list_display = ("cache_key", "tenant", "rule_id", "created_at", "expires_at", "last_accessed_at")
    list_select_related = ("tenant",)
    search_fields = ("cache_key", "rule_id", "tenant__name", "tenant__id")
