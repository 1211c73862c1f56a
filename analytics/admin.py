from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from analytics.models import Build, DayRollup, MergedRollup, SummaryDocument
from tenantadmin.http.admin import ReadOnlyAdmin


@admin.register(DayRollup)
class DayRollupAdmin(ReadOnlyAdmin):
    list_display = ("tenant_id", "day", "bytes", "version", "built_at")
    search_fields = ("tenant_id", "day")
    date_hierarchy = "day"


@admin.register(MergedRollup)
class MergedRollupAdmin(ReadOnlyAdmin):
    list_display = ("tenant_id", "period", "bytes", "built_at")
    search_fields = ("tenant_id", "period")


@admin.register(SummaryDocument)
class SummaryDocumentAdmin(ReadOnlyAdmin):
    list_display = ("tenant_id", "kind", "period", "bytes", "etag", "built_at")
    list_filter = ("kind",)
    search_fields = ("tenant_id", "period")
    exclude: ClassVar = ("body",)


@admin.register(Build)
class BuildAdmin(ReadOnlyAdmin):
    list_display = ("tenant_id", "period", "state", "started_at", "finished_at", "rows", "error")
    list_filter = ("state",)
    search_fields = ("tenant_id", "period", "error")
    date_hierarchy = "started_at"
