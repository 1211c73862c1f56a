"""Admin pages of rulesets, markers and cache metadata."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from accounts.staff.names import NamingAdmin, revisions_address
from rules.models import CacheMetadata, Marker, RuleDraft, Ruleset


@admin.register(Ruleset)
class RulesetAdmin(NamingAdmin):
    named = ("tenant",)
    list_display = ("seq", "tenant", "cache_bust", "modified_at")
    search_fields = ("tenant__name", "tenant__id", "cache_bust")

    def revisions_address(self, obj: Any) -> str:
        return revisions_address(kind="rules", tenant_id=obj.pk)


@admin.register(Marker)
class MarkerAdmin(NamingAdmin):
    named = ("tenant",)
    list_display = ("marker_id", "tenant", "target_rule_id", "invalidated_at", "expires_at", "removed_at")
    search_fields = ("marker_id", "target_rule_id", "tenant__name", "tenant__id")


@admin.register(CacheMetadata)
class CacheMetadataAdmin(NamingAdmin):
    named = ("tenant",)
    list_display = ("cache_key", "tenant", "rule_id", "created_at", "expires_at", "last_accessed_at")
    search_fields = ("cache_key", "rule_id", "tenant__name", "tenant__id")


@admin.register(RuleDraft)
class RuleDraftAdmin(NamingAdmin):
    named = ("tenant",)
    list_display = ("name", "tenant", "base_seq", "modified_by", "modified_at")
    search_fields = ("name", "id", "modified_by", "tenant__name", "tenant__id")
