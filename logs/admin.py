from __future__ import annotations

from django.contrib import admin

from logs.models import LogRead, Partition, QuarantinedEntry, QueryRun, SupersededFile
from tenantadmin.http.admin import ReadOnlyAdmin


@admin.register(Partition)
class PartitionAdmin(ReadOnlyAdmin):
    list_display = (
        "tenant_id",
        "day",
        "rows",
        "bytes",
        "objects_read",
        "duplicates",
        "quarantined",
        "built_at",
    )
    search_fields = ("tenant_id", "day")
    date_hierarchy = "day"


@admin.register(QuarantinedEntry)
class QuarantinedEntryAdmin(ReadOnlyAdmin):
    list_display = ("tenant_id", "day", "key", "position", "reason", "found_at")
    search_fields = ("tenant_id", "key", "reason")
    date_hierarchy = "day"


@admin.register(SupersededFile)
class SupersededFileAdmin(ReadOnlyAdmin):
    list_display = ("key", "superseded_at")
    search_fields = ("key",)


@admin.register(LogRead)
class LogReadAdmin(ReadOnlyAdmin):
    list_display = ("at", "email", "tenant_id", "key", "client_address", "request_id")
    search_fields = ("email", "tenant_id", "key", "request_id")
    date_hierarchy = "at"


@admin.register(QueryRun)
class QueryRunAdmin(ReadOnlyAdmin):
    list_display = ("at", "email", "tenant_id", "outcome", "duration_ms", "rows", "bytes", "statement")
    list_filter = ("outcome",)
    search_fields = ("email", "tenant_id", "statement", "request_id")
    date_hierarchy = "at"
