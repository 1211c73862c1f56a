"""Data of the builds page: each day, month and year once, with its state."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analytics.models import Build
from analytics.models.summaries import is_day
from logs.models import Partition, PendingBuild
from tenantadmin.lib.core.timestamps import days_before, now

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

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
