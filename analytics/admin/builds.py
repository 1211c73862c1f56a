"""Data of the builds page: each day, month and year once, with its state."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from django import forms
from django.db import transaction
from django.db.models import Count, Max

from accounts.admin.base import PART, ReasonForm, TenantActPage, TenantPage
from accounts.cursors import cut_page
from accounts.tenants.listing import require_live_tenant
from analytics.models import Build, TenantHealth
from analytics.models.summaries import is_day
from analytics.numbers.days import mark_days_stale
from analytics.tasks import refresh_day
from logs.audit import Reader
from logs.models import Partition, PendingBuild, QuarantinedEntry
from logs.quarantine import read_quarantined
from tenantadmin.lib.core.errors import BadRequest, NotFound
from tenantadmin.lib.core.formats import count
from tenantadmin.lib.core.timestamps import days_before, now
from tenantadmin.lib.http.health import ObjectStoreUnreachable
from tenantadmin.lib.objectstore import StoreError, default_store

if TYPE_CHECKING:
    from accounts.admin.base import Trail


#: Number of days, and of pending and failed builds, on the page.
MOST_DAYS: Final = 30
_RECENT: Final = 60
#: So many of the last whole days are shown also if they have no log.
_LAST_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class BuiltPeriod:
    """A day, month, year or (empty) the whole log, with its last build and what is pending."""

    period: str
    build: Build | None = None
    pending: PendingBuild | None = None
    partition: Partition | None = None

    @property
    def state(self) -> str:
        """The state in a word."""
        if self.build is not None and self.build.state == Build.State.RUNNING:
            return "building"
        if self.pending is not None:
            return "pending"
        if self.build is not None and self.build.state == Build.State.FAILED:
            return "failed"
        return "no log" if is_day(self.period) and self.partition is None else "built"

    @property
    def at(self) -> dt.datetime | None:
        """When it is due, began or ended."""
        if self.state == "pending" and self.pending is not None:
            return self.pending.due_at
        if self.build is not None:
            return self.build.finished_at or self.build.started_at
        return self.partition.built_at if self.partition is not None else None

    @property
    def error(self) -> str:
        """Why the last build failed, unless another one was asked for since and has not begun."""
        is_asked_anew = self.pending is not None and not self.pending.attempts
        is_told = self.state in {"failed", "pending"} and not is_asked_anew
        return self.build.error if self.build is not None and is_told else ""


@dataclass(frozen=True, slots=True)
class BuildTables:
    """What needs attention first, then the newest."""

    days: Sequence[BuiltPeriod]
    periods: Sequence[BuiltPeriod]
    #: When the months and years that changed are built.
    periods_due: PendingBuild | None

    @property
    def is_moving(self) -> bool:
        """True if something is pending or being built."""
        states = {row.state for row in (*self.days, *self.periods)}
        return self.periods_due is not None or not states.isdisjoint({"building", "pending"})


def read_builds(tenant_id: UUID) -> BuildTables:
    """Return the builds of a tenant: pending, running and failed ones however old, and the last days."""
    builds = Build.objects.filter(tenant_id=tenant_id)
    running = builds.filter(state=Build.State.RUNNING)
    # Home links to failed builds, however old they are.
    shown = _newest([*running[:MOST_DAYS], *builds.unrepaired()[:MOST_DAYS], *builds[:_RECENT]])
    waiting = PendingBuild.objects.filter(tenant_id=tenant_id)
    pending = {
        row.day.isoformat(): row for row in waiting.exclude(day=None).order_by("day")[:MOST_DAYS] if row.day
    }
    own = Partition.objects.filter(tenant_id=tenant_id).defer("hours")
    days = {period for period in (*shown, *pending) if is_day(period)}
    partitions = {
        row.day.isoformat(): row
        for row in (*own.order_by("-day")[:MOST_DAYS], *own.filter(day__in=map(dt.date.fromisoformat, days)))
    }
    if partitions:
        days |= {days_before(now().date(), age).isoformat() for age in range(1, _LAST_DAYS + 1)}
    rows = [
        BuiltPeriod(day, shown.get(day), pending.get(day), partitions.get(day))
        for day in {*days, *partitions}
    ]
    periods = [BuiltPeriod(period, build) for period, build in shown.items() if period not in days]
    return BuildTables(_in_order(rows), _in_order(periods), waiting.filter(day=None).first())


def _newest(builds: Iterable[Build]) -> dict[str, Build]:
    """Return the last build of each period."""
    newest: dict[str, Build] = {}
    for build in sorted(builds, key=lambda build: build.started_at):
        newest[build.period] = build
    return newest


def _in_order(rows: Iterable[BuiltPeriod]) -> list[BuiltPeriod]:
    newest_first = sorted(rows, key=lambda row: row.period, reverse=True)
    return sorted(newest_first, key=lambda row: row.state in {"built", "no log"})


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
            reader = Reader.of_request(self.actor)
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
    back = "tenant-builds"

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
        return _describe_days(len(built), closed=len(closed), without_log=length - len(days)), {
            "first": first.isoformat(),
            "last": last.isoformat(),
            "days": built,
            "withoutLog": closed,
        }


def _describe_days(built: int, *, closed: int, without_log: int) -> str:
    """Describe what happens to the chosen days; a day that is ``closed`` has no log, and a failed build."""
    told = [f"{count(built, 'day')} will be built again."] if built else []
    if closed:
        told.append(
            f"{count(closed, 'day')} without a log: nothing to build. Its state becomes “no log” in a moment."
        )
    if without_log:
        told.append(f"{count(without_log, 'day')} without a log: nothing to do.")
    return " ".join(told)
