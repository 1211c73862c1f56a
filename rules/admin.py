"""Admin pages of rulesets, markers and cache metadata."""

from __future__ import annotations

from django.contrib import admin

from accounts.admin.names import NamingAdmin
from rules.models import CacheMetadata, Marker, RuleDraft, Ruleset


@admin.register(Ruleset)
class RulesetAdmin(NamingAdmin):
    list_display = ("seq", "tenant_id", "cache_bust", "modified_at")
    ordering = ("pk",)
    revisions = "kind=rules&tenant_id={}"


@admin.register(Marker)
class MarkerAdmin(NamingAdmin):
    list_display = ("marker_id", "tenant_id", "target_rule_id", "invalidated_at", "expires_at", "removed_at")


@admin.register(CacheMetadata)
class CacheMetadataAdmin(NamingAdmin):
    list_display = ("cache_key", "tenant_id", "rule_id", "created_at", "expires_at", "last_accessed_at")
    ordering = ("-created_at", "-pk")


@admin.register(RuleDraft)
class RuleDraftAdmin(NamingAdmin):
    list_display = ("name", "tenant_id", "base_seq", "modified_by", "modified_at")
    ordering = ("-modified_at", "-pk")
    search_fields = ("id",)
