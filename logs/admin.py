from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.db.models.functions import Left

from accounts.admin.base import may
from accounts.admin.names import FindsPeople, NamingAdmin
from accounts.events import record_event
from accounts.models.events import EventKind
from accounts.models.users import StaffRole
from logs.cancelling import cancel_query, is_running
from logs.models import (
    DayPart,
    LogRead,
    LogSweep,
    Partition,
    PendingBuild,
    QuarantinedEntry,
    QueryRun,
    SavedQuery,
    SupersededFile,
)
from logs.pending import ATTEMPTS_TO_WAIT_FOR
from tenantadmin.lib.http.admin import ReadOnlyAdmin, shortened
from tenantadmin.lib.http.admin_actions import ConfirmedAction, with_confirmation

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest


@admin.display(description="key", ordering="key")
def key_in_tenant(row: Any) -> str:
    """Return the key of an object without the tenant's id, which has its own column."""
    key: str = row.key
    return key.removeprefix(f"{row.tenant_id}/")


BY_TENANT_OR_DAY: Final = "Tenant, or a day such as 2026-03-01"


class OutcomeFilter(admin.SimpleListFilter):
    """Filter queries by outcome: ok, failed or running."""

    title = "outcome"
    parameter_name = "ended"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002
        return [("ok", "Answered"), ("not", "Refused or failed"), ("running", "Running")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        match self.value():
            case "ok" | "running" as outcome:
                return queryset.filter(outcome=outcome)
            case "not":
                return queryset.exclude(outcome__in=["ok", "running"])
        return queryset


@admin.register(Partition)
class PartitionAdmin(NamingAdmin):
    list_display = (
        *("day", "tenant_id", "rows", "bytes"),
        *("objects_read", "duplicates", "quarantined", "built_at"),
    )
    ordering = ("-day", "-pk")
    list_filter = ("day",)
    search_fields = ("day",)
    search_help_text = BY_TENANT_OR_DAY


@admin.register(DayPart)
class DayPartAdmin(NamingAdmin):
    list_display = ("day", "tenant_id", "stage", "number", "bytes", "built_at")
    ordering = ("-day", "-pk")
    list_filter = ("day",)
    search_fields = ("day",)
    search_help_text = BY_TENANT_OR_DAY


@admin.register(QuarantinedEntry)
class QuarantinedEntryAdmin(NamingAdmin):
    list_display = ("day", "tenant_id", key_in_tenant, "position", shortened("reason"), "found_at")
    ordering = ("-day", "-pk")
    list_filter = ("day",)
    search_fields = ("day",)
    search_help_text = BY_TENANT_OR_DAY


@admin.register(SupersededFile)
class SupersededFileAdmin(ReadOnlyAdmin):
    list_display = ("key", "superseded_at")
    search_fields = ("key__startswith",)


class FailingFilter(admin.SimpleListFilter):
    """Filter pending builds that failed several times."""

    title = "attempts"
    parameter_name = "failing"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002
        return [("yes", "Failed several times")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        return queryset.filter(attempts__gt=ATTEMPTS_TO_WAIT_FOR) if self.value() == "yes" else queryset


@admin.register(PendingBuild)
class PendingBuildAdmin(NamingAdmin):
    list_display = ("marked_at", "tenant_id", "day", "due_at", "attempts")
    list_filter = (FailingFilter,)


@admin.register(LogSweep)
class LogSweepAdmin(NamingAdmin):
    list_display = ("listed_at", "tenant_id")


@admin.register(LogRead)
class LogReadAdmin(NamingAdmin):
    list_display = ("at", "email", "tenant_id", key_in_tenant, "client_address", "request_id")
    list_filter = ("at",)
    search_fields = ("email",)


class StatementsAdmin(ReadOnlyAdmin):
    """Hides from support what members wrote. The Audit page shows it to support with access to the tenant."""

    #: Fields, and columns of the list.
    written_by_members: ClassVar[frozenset[str]] = frozenset({"statement", "opening", "message"})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self._shown_to(request, super().get_fields(request, obj))

    def get_list_display(self, request: HttpRequest) -> Any:
        return self._shown_to(request, super().get_list_display(request))

    def _shown_to(self, request: HttpRequest, names: Sequence[Any]) -> Sequence[Any]:
        if may(request, StaffRole.ADMIN):
            return names
        return [
            action for action in names if getattr(action, "__name__", action) not in self.written_by_members
        ]


def _cancel(request: HttpRequest, run: QueryRun) -> None:
    cancel_query(run.tenant_id, run.pk)
    record_event(
        EventKind.STAFF_ACTED,
        actor=str(request.user),
        subject=str(run.tenant_id),
        tenant_id=run.tenant_id,
        after={"act": "query.cancelled", "queryRun": run.pk, "email": run.email},
    )


@admin.register(QueryRun)
class QueryRunAdmin(StatementsAdmin, NamingAdmin):
    list_display = (
        *("at", "email", "tenant_id", "outcome", "duration_ms", "rows", "bytes"),
        shortened("opening", heading="statement"),
    )
    list_filter = (OutcomeFilter, "at")
    actions = (
        with_confirmation(
            ConfirmedAction(
                name="cancel",
                title="Cancel",
                done="Cancelled",
                effect="It will end within seconds. Its user will get the error that staff cancelled it.",
                do=_cancel,
                refusal=lambda _, run: "" if is_running(run) else "Has ended",
            )
        ),
    )
    # The slowest first.
    sortable_by = ("duration_ms",)
    search_fields = ("email",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # The list shows only the first characters of a statement, which may be a megabyte long.
        rows: QuerySet[Any] = super().get_queryset(request).annotate(opening=Left("statement", 200))
        return rows


@admin.register(SavedQuery)
class SavedQueryAdmin(FindsPeople, StatementsAdmin):
    """For users who copy what they saved; the dashboard keeps queries in the browser."""

    list_display = ("name", "user", "saved_at", shortened("statement"))
    list_select_related = ("user",)
    ordering = ("pk",)
