"""Page 8: builds of a tenant's days and periods, and quarantine."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.db import transaction
from django.db.models import Count, Max

from analytics.models import Build, TenantHealth
from analytics.summaries.days import mark_days_stale
from analytics.tasks import refresh_day
from logs.models import Partition, QuarantinedEntry
from tenantadmin.backoffice.pages.base import PART, ReasonForm, TenantActPage, TenantPage
from tenantadmin.core.errors import BadRequest
from tenantadmin.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROWS: Final = 30
MAX_DAYS: Final = 31


class BuildsPage(TenantPage):
    """Running and ended builds, which the page polls; days; quarantine by day and reason."""

    title = "Builds"
    template_name = "backoffice/tenant/builds.html"
    parts: ClassVar[Mapping[str, str]] = {"builds": "backoffice/tenant/builds_list.html"}

    def read(self) -> Mapping[str, Any]:
        tenant_id = self.tenant.pk
        builds = list(Build.objects.filter(tenant_id=tenant_id)[:_ROWS])
        shown: dict[str, Any] = {"builds": builds, "now": now()}
        if self.request.GET.get(PART) == "builds":
            return shown
        quarantine = QuarantinedEntry.objects.filter(tenant_id=tenant_id).values("day", "reason")
        return {
            **shown,
            "health": TenantHealth.objects.filter(pk=tenant_id).first(),
            "days": Partition.objects.filter(tenant_id=tenant_id).defer("hours").order_by("-day")[:_ROWS],
            "quarantine": quarantine.annotate(entries=Count("pk"), last=Max("found_at")).order_by(
                "-day", "reason"
            )[:100],
            "has_quarantine": bool(quarantine[:1]),
        }


class RebuildForm(ReasonForm):
    """Which days."""

    first = forms.DateField(label="First day (UTC)", widget=forms.DateInput(attrs={"type": "date"}))
    last = forms.DateField(label="Last day", widget=forms.DateInput(attrs={"type": "date"}))
    field_order = ("first", "last", "reason")


class RebuildPage(TenantActPage):
    """Read the raw objects of some days again. Quarantined entries that are valid now become rows."""

    title = "Build days again"
    name = "days.rebuilt"
    button = "Build again"
    follows = (
        f"All raw objects of these days (at most {MAX_DAYS}) are read again, and entries in quarantine with "
        "them. What is published stays until the new build is done."
    )
    form_class = RebuildForm

    def initial(self) -> dict[str, Any]:
        today = now().date().isoformat()
        return {"first": today, "last": today, **super().initial()}

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        first, last = values["first"], values["last"]
        length = (last - first).days + 1
        if not 1 <= length <= MAX_DAYS:
            raise BadRequest(f"Choose 1 to {MAX_DAYS} days; these are {length}.")
        mark_days_stale(tenant=self.tenant.pk, first=first, last=last)
        days = [first + dt.timedelta(days=number) for number in range(length)]
        tenant = str(self.tenant.pk)
        for day in days:
            # Without a broker, beat finds the days: they are stale.
            transaction.on_commit(
                lambda day=day: refresh_day.delay(tenant, day.isoformat()),  # type: ignore[misc]
                robust=True,
            )
        return f"{length} day{'s' if length > 1 else ''} will be built again.", {
            "first": first.isoformat(),
            "last": last.isoformat(),
        }

    def done_at(self) -> str:
        return self.to("tenant-builds")
