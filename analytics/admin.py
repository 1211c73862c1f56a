from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Exists, OuterRef

from accounts.staff.names import NamingAdmin
from analytics.models import Build, DayRollup, MergedRollup, ReplayRun, SummaryDocument, TenantHealth
from logs.pending import pending_days_of
from tenantadmin.http.admin import shortened

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest


@admin.register(DayRollup)
class DayRollupAdmin(NamingAdmin):
    list_display = ("day", "tenant_id", "bytes", "version", "built_at")
    search_fields = ("tenant_id", "day")
    date_hierarchy = "day"


@admin.register(MergedRollup)
class MergedRollupAdmin(NamingAdmin):
    list_display = ("period", "tenant_id", "bytes", "built_at")
    search_fields = ("tenant_id", "period")


@admin.register(SummaryDocument)
class SummaryDocumentAdmin(NamingAdmin):
    list_display = ("kind", "period", "tenant_id", "incomplete", "bytes", "etag", "built_at")
    list_filter = ("kind",)
    search_fields = ("tenant_id", "period")
    exclude: ClassVar = ("body",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        pending = pending_days_of(OuterRef("tenant_id"), OuterRef("period"))
        annotated: QuerySet[Any] = rows.annotate(lacks_days=Exists(pending))
        return annotated

    @admin.display(boolean=True, ordering="lacks_days")
    def incomplete(self, row: Any) -> bool:
        """Tell whether a day of the period has logs that no build has read yet."""
        return bool(row.lacks_days)


@admin.register(Build)
class BuildAdmin(NamingAdmin):
    list_display = (
        *("started_at", "tenant_id", "period", "state"),
        *("finished_at", "rows", shortened("error")),
    )
    list_filter = ("state",)
    search_fields = ("tenant_id", "period", "error")
    date_hierarchy = "started_at"


@admin.register(ReplayRun)
class ReplayRunAdmin(NamingAdmin):
    list_display = ("requested_at", "tenant_id", "state", "first_day", "last_day", shortened("error"))
    list_filter = ("state",)
    search_fields = ("tenant_id", "requested_by")
    date_hierarchy = "requested_at"


@admin.register(TenantHealth)
class TenantHealthAdmin(NamingAdmin):
    list_display = (
        *("tenant_id", "last_day", "rate_1", "rate_7", "rate_28", "requests_7"),
        *("stale_days", "quarantined", "updated_at"),
    )
    search_fields = ("tenant_id",)
