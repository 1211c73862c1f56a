"""Pages of a tenant's builds and quarantine."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.db import transaction
from django.db.models import Count, Max

from accounts.admin.pages.base import PART, ReasonForm, TenantActPage, TenantPage
from accounts.cursors import cut_page
from accounts.tenants.listing import require_live_tenant
from analytics.admin.builds import MOST_DAYS, read_builds
from analytics.models import TenantHealth
from analytics.summaries.days import mark_days_stale
from analytics.tasks import refresh_day
from logs.audit import Reader
from logs.models import QuarantinedEntry
from logs.quarantine import read_quarantined
from tenantadmin.lib.core.errors import BadRequest, NotFound
from tenantadmin.lib.core.formats import count
from tenantadmin.lib.core.hosts import client_address
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.http.health import ObjectStoreUnreachable
from tenantadmin.lib.objectstore import StoreError, default_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accounts.admin.pages.base import Trail

#: Number of rows of the quarantine, by day and reason.
_REASONS: Final = 100
#: Number of quarantined entries on one page.
_ENTRIES: Final = 100
MAX_DAYS: Final = 31


class BuildsPage(TenantPage):
    """Days, months and years with their builds (polled while one moves), and quarantine by day and reason."""

    title = "Builds"
    template_name = "backoffice/tenant/builds.html"
    parts: ClassVar[Mapping[str, str]] = {"builds": "backoffice/tenant/builds_list.html"}

    def read(self) -> Mapping[str, Any]:
        tenant_id = self.tenant.pk
        shown: dict[str, Any] = {"builds": read_builds(tenant_id), "most_days": MOST_DAYS}
        if self.request.GET.get(PART) == "builds":
            return shown
        quarantine = QuarantinedEntry.objects.filter(tenant_id=tenant_id).values("day", "reason")
        return {
            **shown,
            "health": TenantHealth.objects.filter(pk=tenant_id).first(),
            "quarantine": quarantine.annotate(entries=Count("pk"), last=Max("found_at")).order_by(
                "-day", "reason"
            )[:_REASONS],
        }


class QuarantinePage(TenantPage):
    """The quarantined entries of a day, without their bytes."""

    title = "Quarantine"
    template_name = "backoffice/tenant/quarantine.html"

    def trail(self) -> Trail:
        return [*super().trail(), ("Builds", self.to("tenant-builds"))]

    def read(self) -> Mapping[str, Any]:
        try:
            day = dt.date.fromisoformat(self.kwargs["day"])
        except ValueError:
            raise NotFound("There is no such day.") from None
        entries = QuarantinedEntry.objects.filter(tenant_id=self.tenant.pk, day=day).order_by("pk")
        after = self.request.GET.get("after", "")
        if after.isdecimal():
            entries = entries.filter(pk__gt=int(after[:18]))
        shown, more = cut_page(entries, _ENTRIES)
        return {"day": day, "entries": shown, "after": shown[-1].pk if more else None}


class QuarantinedEntryPage(TenantPage):
    """The raw bytes of one quarantined entry, for members. Each view is audited."""

    title = "Entry in quarantine"
    template_name = "backoffice/tenant/quarantined_entry.html"

    def trail(self) -> Trail:
        return [*super().trail(), ("Builds", self.to("tenant-builds"))]

    def read(self) -> Mapping[str, Any]:
        self.require_access()
        entry = QuarantinedEntry.objects.filter(tenant_id=self.tenant.pk, pk=self.kwargs["entry"]).first()
        if entry is None:
            raise NotFound("This entry is not in quarantine any more.")
        try:
            reader = Reader(self.actor, client_address(self.request))
            raw = read_quarantined(default_store(), entry, reader=reader)
        except StoreError as error:
            raise ObjectStoreUnreachable from error
        return {"entry": entry, "raw": raw}


class RebuildForm(ReasonForm):
    """The days to build again."""

    first = forms.DateField(label="First day (UTC)", widget=forms.DateInput(attrs={"type": "date"}))
    last = forms.DateField(label="Last day", widget=forms.DateInput(attrs={"type": "date"}))
    field_order = ("first", "last", "reason")


class RebuildPage(TenantActPage):
    """Build days again from their raw objects. Quarantined entries that are now valid become rows."""

    title = "Build days again"
    name = "days.rebuilt"
    button = "Build again"
    effect = (
        f"The log files of these days (at most {MAX_DAYS}) will be read again, also what is in quarantine. "
        "What is shown stays until the new build is done. A failed day that has no log will become “no log”."
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
        require_live_tenant(self.tenant.pk)
        try:
            days = mark_days_stale(default_store(), tenant=self.tenant.pk, first=first, last=last)
        except StoreError as error:
            raise ObjectStoreUnreachable from error
        if not days:
            raise BadRequest(f"There is no log of {first} to {last}.")
        tenant = str(self.tenant.pk)
        for day in days:
            # Without a broker, beat finds the days later, because they are pending.
            transaction.on_commit(
                lambda day=day: refresh_day.delay(tenant, day.isoformat()),  # type: ignore[misc]
                robust=True,
            )
        built = [day.isoformat() for day, has_log in days.items() if has_log]
        closed = [day.isoformat() for day, has_log in days.items() if not has_log]
        return _say_days(len(built), closed=len(closed), without_log=length - len(days)), {
            "first": first.isoformat(),
            "last": last.isoformat(),
            "days": built,
            "withoutLog": closed,
        }

    def done_at(self) -> str:
        return self.to("tenant-builds")


def _say_days(built: int, *, closed: int, without_log: int) -> str:
    """Say what happens to the chosen days; a day that is ``closed`` has no log, and a failed build."""
    told = [f"{count(built, 'day')} will be built again."] if built else []
    if closed:
        told.append(
            f"{count(closed, 'day')} without a log: nothing to build. Its state becomes “no log” in a moment."
        )
    if without_log:
        told.append(f"{count(without_log, 'day')} without a log: nothing to do.")
    return " ".join(told)
