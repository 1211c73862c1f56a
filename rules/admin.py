"""Admin pages of rulesets, markers and cache metadata."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from accounts.admin.names import NamingAdmin, revisions_address
from rules.models import CacheMetadata, Marker, RuleDraft, Ruleset


@admin.register(Ruleset)
class RulesetAdmin(NamingAdmin):
    named = ("tenant",)
    list_display = ("seq", "tenant", "cache_bust", "modified_at")
    ordering = ("pk",)
    search_fields = ("tenant",)

    def revisions_address(self, obj: Any) -> str:
        return revisions_address(kind="rules", tenant_id=obj.pk)


@admin.register(Marker)
class MarkerAdmin(NamingAdmin):
    named = ("tenant",)
    list_display = ("marker_id", "tenant", "target_rule_id", "invalidated_at", "expires_at", "removed_at")
    search_fields = ("tenant",)


@admin.register(CacheMetadata)
class CacheMetadataAdmin(NamingAdmin):
    named = ("tenant",)
    list_display = ("cache_key", "tenant", "rule_id", "created_at", "expires_at", "last_accessed_at")
    ordering = ("-created_at", "-pk")
    search_fields = ("tenant",)


@admin.register(RuleDraft)
class RuleDraftAdmin(NamingAdmin):
    named = ("tenant",)
    list_display = ("name", "tenant", "base_seq", "modified_by", "modified_at")
    ordering = ("-modified_at", "-pk")
    search_fields = ("id",)
