"""Data of a tenant's overview: figures, chart, changes; rules and top statements."""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import duckdb
from django.db.models import Count, Q

from accounts.dashboard import in_dashboard
from accounts.models import Fqdn, Revision
from accounts.models.history import RevisionKind
from analytics.digest.verdict.sentences import VerdictState
from analytics.models import Build, DayRollup, TenantHealth
from analytics.models.summaries import is_day
from analytics.summaries.activity import Range, is_fair, read_activity
from analytics.summaries.engine import shared_engine
from analytics.summaries.ranges import find_range, rules_of, statements_of
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import StoreError, default_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from analytics.digest.verdict.sentences import Verdict
    from analytics.summaries.activity import Activity
    from analytics.summaries.documents.rules import RuleRecord

logger = logging.getLogger(__name__)

#: Lengths of the range that the page offers, in days.
RANGES: Final = (7, 28, 90, 365)
DEFAULT_RANGE: Final = 28
_STATEMENTS: Final = 10
_CHANGES: Final = 10


@dataclass(frozen=True, slots=True)
class Overview:
    """A tenant's figures in a range, with their change against the range before."""

    range: Range
    health: TenantHealth | None
    activity: Activity
    changes: Sequence[Revision]
    fqdns: Sequence[Fqdn]
    failed: Sequence[Build]

    def failed_beside(self, verdict: Verdict) -> Sequence[Build]:
        """Return the failed builds that ``verdict`` does not tell.

        Of a late log it tells those after the last day, but not while later days are being summarised.
        """
        last = next((it.day for it in (verdict, *verdict.more) if it.state is VerdictState.LOG_LATE), None)
        if last is None:
            return self.failed
        return [it for it in self.failed if not (is_day(it.period) and it.period > last.isoformat())]

    @property
    def is_incomplete(self) -> bool:
        """True if summaries may lack requests."""
        return bool(self.failed or (self.health and (self.health.stale_days or self.health.quarantined)))


def read_overview(tenant_id: UUID, *, days: int) -> Overview:
    """Return the overview of ``days`` days up to the last day with log entries, or up to today."""
    health = TenantHealth.objects.filter(pk=tenant_id).first()
    chosen = Range.ending((health.last_day if health else None) or now().date(), days=days)
    start = dt.datetime.combine(chosen.first, dt.time(), dt.UTC)
    changes = Revision.objects.filter(
        kind__in=[RevisionKind.RULES, RevisionKind.CONFIG], tenant_id=tenant_id, changed_at__gte=start
    ).defer("document")
    return Overview(
        range=chosen,
        health=health,
        activity=read_activity(tenant_id, first=chosen.first, last=chosen.last),
        changes=list(changes.order_by("-changed_at", "-pk")[:_CHANGES]),
        fqdns=list(Fqdn.objects.filter(tenant_id=tenant_id)),
        failed=list(Build.objects.to_repair().filter(tenant_id=tenant_id)[:_CHANGES]),
    )


@dataclass(frozen=True, slots=True)
class RuleChange:
    """The change of a rule's figures against the range before: means of the days with a log, and hit rate."""

    requests: float
    rate: float


@dataclass(frozen=True, slots=True)
class RangeParts:
    """Rules of a range, each with its change (None: new, or too few days before), and top statements."""

    rules: Sequence[tuple[RuleRecord, RuleChange | None]]
    statements: Sequence[dict[str, Any]]
    has_before: bool


def read_range(tenant_id: UUID, chosen: Range) -> RangeParts | None:
    """Return the rules and statements of a range, or None if its rollups cannot be read.

    The page loads them in a second request, because rollups are in the object store.
    """
    own = find_range(tenant=tenant_id, first=chosen.first, last=chosen.last)
    before = find_range(tenant=tenant_id, first=chosen.before_first, last=chosen.before_last)
    store = default_store()
    try:
        with shared_engine(store) as engine:
            earlier = {rule.rule_id: rule for rule in rules_of(engine.connection, store, before)}
            rules = sorted(
                rules_of(engine.connection, store, own), key=lambda rule: rule.total_executions, reverse=True
            )
            statements = statements_of(engine.connection, store, own, most=_STATEMENTS)
    except (StoreError, duckdb.Error) as error:
        logger.warning("The rollups of %s to %s cannot be read: %s", chosen.first, chosen.last, error)
        return None
    days, days_before = _count_logged_days(tenant_id, chosen)
    changes = [
        _change_of(rule, earlier.get(rule.rule_id), days=days, days_before=days_before) for rule in rules
    ]
    return RangeParts(
        list(zip(rules, changes, strict=True)), statements, has_before=is_fair(days, days_before)
    )


def _count_logged_days(tenant_id: UUID, chosen: Range) -> tuple[int, int]:
    """Return the numbers of days with a log, in a range and in the range before."""
    own = Q(day__gte=chosen.first)
    logged = DayRollup.objects.filter(
        Q(hits__gt=0) | Q(misses__gt=0), tenant_id=tenant_id, day__range=(chosen.before_first, chosen.last)
    )
    counts = logged.aggregate(own=Count("pk", filter=own), before=Count("pk", filter=~own))
    return counts["own"], counts["before"]


def _change_of(
    rule: RuleRecord, before: RuleRecord | None, *, days: int, days_before: int
) -> RuleChange | None:
    if before is None or not is_fair(days, days_before):
        return None
    return RuleChange(
        rule.total_executions / days - before.total_executions / days_before,
        rule.hit_rate - before.hit_rate,
    )


def chart_of(overview: Overview, *, tenant_id: UUID) -> dict[str, Any]:
    """Return the data of the chart: requests by outcome and hit rate by day, and a line for each change.

    Lines link to the tenant's history.
    """
    by_day = {day.day: day for day in overview.activity.days}
    labels = [overview.range.first + dt.timedelta(days=number) for number in range(overview.range.days)]
    days = [by_day.get(day) for day in labels]
    return {
        "labels": [day.isoformat() for day in labels],
        "bars": [
            {"label": "Hits", "color": "hit", "values": [day.hits if day else 0 for day in days]},
            {"label": "Misses", "color": "miss", "values": [day.stored_misses if day else 0 for day in days]},
            {
                "label": "Not cached",
                "color": "not-cached",
                "values": [day.not_cached if day else 0 for day in days],
            },
        ],
        "line": {
            "label": "Hit rate, %",
            "values": [100 * day.hits / day.requests if day and day.requests else None for day in days],
        },
        "marks": [
            {
                "at": change.changed_at.date().isoformat(),
                "text": f"{change.kind} revision {change.seq}: {change.text}",
                "href": in_dashboard(tenant_id, "history", kind=change.kind, seq=change.seq),
            }
            for change in overview.changes
            # The log of today, and perhaps of earlier days, has not arrived yet.
            if change.changed_at.date() <= overview.range.last
        ],
    }
