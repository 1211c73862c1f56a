from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models.functions import Left

from accounts.staff.names import NamingAdmin
from logs.models import LogRead, LogSweep, Partition, PendingBuild, QuarantinedEntry, QueryRun, SupersededFile
from tenantadmin.http.admin import ReadOnlyAdmin, shortened

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest


@admin.display(description="key", ordering="key")
def key_in_tenant(row: Any) -> str:
    """Return the key of an object without the tenant's id, which has a column of its own."""
    key: str = row.key
    return key.removeprefix(f"{row.tenant_id}/")


@admin.register(Partition)
class PartitionAdmin(NamingAdmin):
    list_display = (
        *("day", "tenant_id", "rows", "bytes"),
        *("objects_read", "duplicates", "quarantined", "built_at"),
    )
    search_fields = ("tenant_id", "day")
    date_hierarchy = "day"


@admin.register(QuarantinedEntry)
class QuarantinedEntryAdmin(NamingAdmin):
    list_display = ("day", "tenant_id", key_in_tenant, "position", shortened("reason"), "found_at")
    search_fields = ("tenant_id", "key", "reason")
    date_hierarchy = "day"


@admin.register(SupersededFile)
class SupersededFileAdmin(ReadOnlyAdmin):
    list_display = ("key", "superseded_at")
    search_fields = ("key",)


@admin.register(PendingBuild)
class PendingBuildAdmin(NamingAdmin):
    list_display = ("marked_at", "tenant_id", "day", "due_at", "attempts")
    search_fields = ("tenant_id", "day")


@admin.register(LogSweep)
class LogSweepAdmin(NamingAdmin):
    list_display = ("listed_at", "tenant_id")
    search_fields = ("tenant_id",)


@admin.register(LogRead)
class LogReadAdmin(NamingAdmin):
    list_display = ("at", "email", "tenant_id", key_in_tenant, "client_address", "request_id")
    search_fields = ("email", "tenant_id", "key", "request_id")
    date_hierarchy = "at"


@admin.register(QueryRun)
class QueryRunAdmin(NamingAdmin):
    list_display = (
        *("at", "email", "tenant_id", "outcome", "duration_ms", "rows", "bytes"),
        shortened("opening", heading="statement"),
    )
    list_filter = ("outcome",)
    search_fields = ("email", "tenant_id", "statement", "request_id")
    date_hierarchy = "at"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # The list shows only the first characters of a statement, which may be a megabyte long.
        rows: QuerySet[Any] = super().get_queryset(request).annotate(opening=Left("statement", 200))
        return rows
