from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Count, Exists, OuterRef, Subquery
from django.utils.html import format_html, format_html_join

from accounts.admin.finding import tenants_meant
from accounts.admin.model_admins import MembershipInline, StateFilter
from accounts.admin.names import FindsPeople, NamingAdmin
from accounts.models import Membership, Tenant
from accounts.models.billing import Plan
from accounts.models.users import MembershipRole
from accounts.revisions import read_last_changes
from analytics.models import (
    Alert,
    AlertDelivery,
    AlertFiring,
    Assessment,
    Build,
    DayRollup,
    Digest,
    DigestMail,
    DigestPreference,
    Effect,
    MergedRollup,
    Mining,
    ModelExchange,
    Recommendation,
    ReplayRun,
    SummaryDocument,
    TenantHealth,
)
from analytics.reports.weeks import read_health
from analytics.watch.alerts import describe_channel
from analytics.words.digests import render_digest
from analytics.words.verdict import describe_open
from logs.pending import pending_days_of
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.http.admin import ReadOnlyAdmin, shortened

if TYPE_CHECKING:
    from django.db.models import Model, Q, QuerySet
    from django.http import HttpRequest

    from analytics.models.summaries import TenantHealthQuerySet


@admin.display(description="channels")
def channels(obj: Alert) -> str:
    """Show the channels of an alert. Paths of URLs are secrets."""
    return ", ".join(_channel_text(channel) for channel in obj.channels)


@admin.display(description="channel")
def channel(obj: AlertDelivery) -> str:
    """Show the channel of a message, without the path of its URL."""
    return _channel_text(obj.channel)


def _channel_text(stored: Mapping[str, Any]) -> str:
    described = describe_channel(stored)
    return f"{described.type} {described.to or described.url}"


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "tenant", "name", "kind", "enabled", "threshold", "value", "evaluated_at")
    list_filter = ("kind", "enabled")
    list_select_related = ("tenant",)
    search_fields = ("tenant__id",)
    shown: ClassVar = {"channels": channels}


@admin.register(AlertFiring)
class AlertFiringAdmin(ReadOnlyAdmin):
    list_display = ("started_at", "alert", "ended_at", "value", "threshold")
    list_filter = ("started_at",)
    list_select_related = ("alert",)
    search_fields = ("alert__alert_id",)


@admin.register(AlertDelivery)
class AlertDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "alert", "occasion", channel, "state", "attempts", shortened("error"))
    list_filter = ("state", "created_at")
    list_select_related = ("alert",)
    search_fields = ("alert__alert_id",)
    shown: ClassVar = {"channel": channel}


@admin.register(DayRollup)
class DayRollupAdmin(NamingAdmin):
    list_display = ("day", "tenant_id", "bytes", "version", "built_at")
    ordering = ("-tenant_id", "-day")


@admin.register(MergedRollup)
class MergedRollupAdmin(NamingAdmin):
    list_display = ("period", "tenant_id", "bytes", "version", "built_at")
    ordering = ("-tenant_id", "-period")


@admin.register(SummaryDocument)
class SummaryDocumentAdmin(NamingAdmin):
    list_display = ("kind", "period", "tenant_id", "incomplete", "bytes", "etag", "built_at")
    list_filter = ("kind",)
    ordering = ("-tenant_id", "-kind", "-period")
    exclude: ClassVar = ("body",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        pending = pending_days_of(OuterRef("tenant_id"), OuterRef("period"))
        annotated: QuerySet[Any] = rows.annotate(lacks_days=Exists(pending))
        return annotated

    @admin.display(boolean=True, ordering="lacks_days")
    def incomplete(self, row: Any) -> bool:
        """Return whether a day of the period has logs that no build has read yet."""
        return bool(row.lacks_days)


@admin.register(Build)
class BuildAdmin(NamingAdmin):
    list_display = (
        "started_at", "tenant_id", "period", "state",
        "finished_at", "rows", shortened("error"),
    )  # fmt: skip
    list_filter = ("state", "started_at")


@admin.register(ReplayRun)
class ReplayRunAdmin(NamingAdmin):
    list_display = ("requested_at", "tenant_id", "state", "first_day", "last_day", shortened("error"))
    list_filter = ("state", "requested_at")


class HealthFilter(admin.SimpleListFilter):
    """Filter tenants by their health. Each condition has an index."""

    #: Each choice, what it says, and the rows of health.
    choices_of: ClassVar[Mapping[str, tuple[str, Callable[[TenantHealthQuerySet], TenantHealthQuerySet]]]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002
        return [(value, words) for value, (words, _) in self.choices_of.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        value = self.value() or ""
        if value not in self.choices_of:
            return queryset
        _, condition = self.choices_of[value]
        return queryset.filter(Exists(condition(TenantHealth.objects.filter(pk=OuterRef("pk")))))


class FindingsFilter(HealthFilter):
    """Tenants whose digests found something."""

    title = "findings"
    parameter_name = "findings"
    choices_of: ClassVar = {
        "yes": ("Open, or closed since the last digest", lambda health: health.filter(has_findings=True))
    }


class LogFilter(HealthFilter):
    """Tenants by the last day of their log."""

    title = "log"
    parameter_name = "log"
    choices_of: ClassVar = {
        "current": ("Reaches to yesterday", lambda health: health.current(now().date())),
        "late": ("Late", lambda health: health.late(now().date())),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [*super().lookups(request, model_admin), ("none", "None yet")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() != "none":
            return super().queryset(request, queryset)
        # It may read the keys of all tenants: 0.1 s for 100,000.
        logged = TenantHealth.objects.filter(pk=OuterRef("pk"), last_day__isnull=False)
        return queryset.filter(~Exists(logged))


class RateFilter(HealthFilter):
    """Tenants by the hit rate of their last seven days."""

    title = "hit rate, 7 days"
    parameter_name = "rate"
    choices_of: ClassVar = {
        "0": ("Below 25%", lambda health: health.filter(rate_7__lt=0.25)),
        "25": ("25% to 50%", lambda health: health.filter(rate_7__gte=0.25, rate_7__lt=0.5)),
        "50": ("50% to 75%", lambda health: health.filter(rate_7__gte=0.5, rate_7__lt=0.75)),
        "75": ("75% or more", lambda health: health.filter(rate_7__gte=0.75)),
    }


class PlanFilter(admin.SimpleListFilter):
    """Tenants by the plan of their account."""

    title = "plan"
    parameter_name = "plan"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002
        return [(value, str(words)) for value, words in Plan.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        return queryset.filter(account__plan=self.value()) if self.value() in Plan else queryset


@admin.register(Tenant)
class TenantAdmin(ReadOnlyAdmin):
    page = "admin:tenant"
    creating_page = "admin:tenant-new"
    revisions = "tenant_id={}"
    list_display = (
        *("name", "state", "account_and_plan", "owner"),
        *("hit_rate", "requests", "warehouse_time", "last_day", "last_change"),
    )
    list_filter = (("deleted_at", StateFilter), FindingsFilter, LogFilter, RateFilter, PlanFilter)
    list_select_related = ("account",)
    sortable_by = ("name", "hit_rate", "requests", "warehouse_time", "last_day", "last_change")
    sorted_by_others: ClassVar[Mapping[str, tuple[type[Model], str]]] = {
        "hit_rate": (TenantHealth, "rate_7"),
        "requests": (TenantHealth, "requests_7"),
        "warehouse_time": (TenantHealth, "warehouse_ms_7"),
        "last_day": (TenantHealth, "last_day"),
    }
    linked_by = ("account",)
    search_fields = ("name",)
    search_help_text = "Name, member, FQDN or start of the id"
    list_before_template = "backoffice/tenants_note.html"
    inlines = (MembershipInline,)

    def prepare(self, rows: Sequence[Any]) -> None:
        keys = [row.pk for row in rows]
        health = read_health(keys)
        # Any owner: sorting would read all owners of a tenant.
        owners = Membership.objects.filter(tenant=OuterRef("pk"), role=MembershipRole.OWNER).order_by()
        emails = dict(
            Tenant.objects.filter(pk__in=keys)
            .order_by()
            .values_list("pk", Subquery(owners.values("user__email")[:1]))
        )
        findings = describe_open(key for key in keys if health[key].has_findings)
        failed = Build.objects.to_repair().filter(tenant_id__in=keys).order_by()
        counts = dict(failed.values_list("tenant_id").annotate(builds=Count("pk")))
        changes = read_last_changes(keys)
        for row in rows:
            row.failed_builds = counts.get(row.pk, 0)
            row.changed_at = changes.get(row.pk)
            row.health = health[row.pk]
            row.findings = findings.get(row.pk, ())
            row.owner_email = emails.get(row.pk)

    @admin.display(description="state")
    def state(self, tenant: Any) -> str:
        kind, word = ("bad", "deleted") if tenant.deleted_at else ("good", "live")
        chip = format_html('<span class="chip {}">{}</span>', kind, word)
        if tenant.deleted_at:
            return chip
        told = "\n".join(sentence.text for sentence in tenant.findings)
        wrong = (
            (told, len(tenant.findings), "open finding"),
            ("Days or longer periods whose last build failed", tenant.failed_builds, "failed build"),
        )
        chips = [(title, formats.count(number, noun)) for title, number, noun in wrong if number]
        return chip + format_html_join("", ' <span class="chip bad" title="{}">{}</span>', chips)

    @admin.display(description="account and plan")
    def account_and_plan(self, tenant: Any) -> str:
        return f"{tenant.account.name}, {tenant.account.get_plan_display()}"

    @admin.display(description="an owner")
    def owner(self, tenant: Any) -> str:
        return format_html('<span title="{0}">{0}</span>', tenant.owner_email or formats.NONE)

    @admin.display(description="hit rate, 7 d", ordering="pk")
    def hit_rate(self, tenant: Any) -> str:
        return formats.percent(tenant.health.rate_7)

    @admin.display(description="requests, 7 d", ordering="pk")
    def requests(self, tenant: Any) -> str:
        return formats.number(tenant.health.requests_7)

    @admin.display(description="spent, 7 d", ordering="pk")
    def warehouse_time(self, tenant: Any) -> str:
        return formats.duration(tenant.health.warehouse_ms_7)

    @admin.display(description="last day", ordering="pk")
    def last_day(self, tenant: Any) -> str:
        day = tenant.health.last_day
        return formats.NONE if day is None else day.isoformat()

    @admin.display(description="last change", ordering="modified_at")
    def last_change(self, tenant: Any) -> dt.datetime | None:
        changed_at: dt.datetime | None = tenant.changed_at
        return changed_at

    def matching(self, term: str) -> Q:
        return tenants_meant(term)


@admin.register(TenantHealth)
class TenantHealthAdmin(NamingAdmin):
    list_display = (
        "tenant_id", "last_day", "rate_1", "rate_7", "rate_28", "requests_7",
        "stale_days", "quarantined", "has_findings", "updated_at",
    )  # fmt: skip


@admin.display(description="document")
def document(obj: Digest) -> str:
    """Show the digest as plain text. The API has its facts with their SQL."""
    return format_html('<pre class="json">{}</pre>', render_digest(obj, "text/plain"))


@admin.register(Digest)
class DigestAdmin(NamingAdmin):
    list_display = ("period", "tenant_id", "first_day", "last_day", "made_at")
    ordering = ("-tenant_id", "-period")
    shown: ClassVar = {"document": document}


@admin.register(ModelExchange)
class ModelExchangeAdmin(NamingAdmin):
    list_display = ("sent_at", "tenant_id", "period", "outcome", shortened("reason"))
    list_filter = ("outcome", "sent_at")


@admin.register(DigestPreference)
class DigestPreferenceAdmin(FindsPeople):
    list_display = ("user", "tenant", "frequency")
    list_filter = ("frequency",)
    list_select_related = ("user", "tenant")
    search_fields = ("user__email", "tenant__id")
    search_help_text = "User's name or email, or the tenant's id"


@admin.register(DigestMail)
class DigestMailAdmin(FindsPeople, NamingAdmin):
    list_display = ("due_at", "tenant_id", "period", "user", "state", "attempts", "finished_at")
    list_filter = ("state", "due_at")
    list_select_related = ("user",)
    search_help_text = "User's name or email, or the tenant"


@admin.register(Recommendation)
class RecommendationAdmin(NamingAdmin):
    list_display = ("mined_at", "tenant_id", "kind", "state", shortened("title"), "decided_by")
    list_filter = ("state", "kind", "mined_at")
    ordering = ("-mined_at", "-pk")


@admin.register(Mining)
class MiningAdmin(NamingAdmin):
    list_display = ("requested_at", "tenant_id", "state", "finished_at", shortened("error"))
    list_filter = ("state",)
    ordering = ("-requested_at", "-pk")


@admin.register(Assessment)
class AssessmentAdmin(NamingAdmin):
    list_display = ("created_at", "tenant_id", "source", "owner")
    list_filter = ("source",)


@admin.register(Effect)
class EffectAdmin(NamingAdmin):
    list_display = ("measured_at", "tenant_id", "recommendation", "state", "first_day", "last_day")
    list_filter = ("state",)
    list_select_related = ("recommendation",)
    ordering = ("-pk",)
