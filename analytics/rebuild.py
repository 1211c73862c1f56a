"""Keeps the documents of months, years and the whole history current with the days' rollups.

Contract: "Summary records". A document remembers the builds that it was computed from; where those are
no longer the present ones, it is stale. Raw rows are never read.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import transaction

from analytics.builds import recorded_build
from analytics.documents.month import month_document
from analytics.documents.opportunities import opportunities_document
from analytics.documents.rules import rules_document
from analytics.documents.users import users_document
from analytics.documents.year import year_document
from analytics.models import Kind, SummaryDocument
from analytics.periods import HISTORY, period_bounds, periods_of, source_digest
from analytics.source import RolledDay, Rollups
from analytics.store import day_builds, rolled_days, save_document, stored_activity
from logs.compaction.engine import connect
from logs.locks import build_lock
from tenantadmin.http.timestamps import now
from tenantadmin.objectstore.duck import attach_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from tenantadmin.objectstore import ObjectStore

#: The documents of a period, by the period's length as text.
_KINDS = {
    len("2026-03"): (Kind.MONTH,),
    len("2026"): (Kind.YEAR, Kind.RULES, Kind.OPPORTUNITIES),
    len(HISTORY): (Kind.USERS,),
}


def find_stale_periods(*, tenant: UUID) -> list[str]:
    """Months, then years, then the history, whose documents are missing, stale or without any day left."""
    builds = day_builds(tenant=tenant)
    wanted = {period: source_digest(period, builds) for period in periods_of(item.day for item in builds)}
    current: dict[str, set[str]] = {}
    stored = SummaryDocument.objects.filter(tenant_id=tenant).exclude(kind=Kind.DAY)
    for period, kind, source in stored.values_list("period", "kind", "source"):
        if wanted.get(period) == source:
            current.setdefault(period, set()).add(kind)
    stale = [period for period in wanted if current.get(period, set()) != set(_KINDS[len(period)])]
    left = set(stored.values_list("period", flat=True)) - set(wanted)
    return [*stale, *sorted(left, key=len, reverse=True)]


def rebuild_period(store: ObjectStore, *, tenant: UUID, period: str, wait: bool = False) -> bool:
    """Compute the documents of a month, a year or the history anew where they are stale.

    Returns whether anything had to be done.

    Raises:
        Busy: another worker is at this period, and ``wait`` is false.
    """
    with build_lock(tenant=tenant, period=period or "history", wait=wait):
        if period not in find_stale_periods(tenant=tenant):
            return False
        with recorded_build(tenant=tenant, period=period):
            builds = day_builds(tenant=tenant)
            source = source_digest(period, builds)
            documents = _documents(store, tenant=tenant, period=period)
            with transaction.atomic():
                if not documents:
                    _withdraw(tenant=tenant, period=period)
                for kind, document in documents.items():
                    save_document(tenant=tenant, kind=kind, period=period, document=document, source=source)
        return True


@contextmanager
def opened_rollups(
    store: ObjectStore, days: Sequence[RolledDay], *, user: str | None = None
) -> Iterator[Rollups]:
    """The rollups of ``days`` on an engine of their own."""
    with (
        tempfile.TemporaryDirectory(prefix="tenantadmin-") as directory,
        connect(spill=Path(directory)) as connection,
    ):
        attach_store(connection, store)
        yield Rollups(connection, days, user=user)


def _documents(store: ObjectStore, *, tenant: UUID, period: str) -> dict[Kind, dict[str, Any]]:
    """The documents of a period by kind; none where it has no day."""
    first, last = period_bounds(period)
    days = rolled_days(store, tenant=tenant, first=first, last=last)
    if not days:
        return {}
    with opened_rollups(store, days) as rollups:
        if period == HISTORY:
            return {Kind.USERS: users_document(rollups, tenant=tenant, generated_at=now())}
        if first.month == last.month:
            return {Kind.MONTH: month_document(rollups, month=first.month)}
        activity = stored_activity(tenant=tenant, first=_year_before(first), last=last)
        return {
            Kind.YEAR: year_document(rollups, tenant=tenant, year=first.year, activity=activity),
            Kind.RULES: rules_document(rollups),
            Kind.OPPORTUNITIES: opportunities_document(rollups),
        }


def _year_before(day: date) -> date:
    return date(max(day.year - 1, 1), 1, 1)


def _withdraw(*, tenant: UUID, period: str) -> None:
    SummaryDocument.objects.filter(tenant_id=tenant, period=period).exclude(kind=Kind.DAY).delete()
