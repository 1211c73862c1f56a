"""The overview of one tenant: figures, days for the chart, rules, statements, changes."""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from accounts.models import Fqdn, Revision
from accounts.models.history import RevisionKind
from analytics.models import DayRollup, Kind, TenantHealth
from analytics.summaries.store import read_document
from tenantadmin.core.timestamps import now
from tenantadmin.objectstore import StoreError, default_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

logger = logging.getLogger(__name__)

#: Lengths of the period that the page offers, in days.
RANGES: Final = (7, 28, 90, 365)
DEFAULT_RANGE: Final = 28
_STATEMENTS: Final = 10
#: The largest document that the page reads.
_MAX_DOCUMENT_BYTES: Final = 1 << 20
_CHANGES: Final = 10


@dataclass(frozen=True, slots=True)
class Overview:
    """What the page of a tenant shows of ``days`` days that end with ``last``."""

    days: int
    first: dt.date
    last: dt.date
    health: TenantHealth | None
    counts: Sequence[DayRollup]
    changes: Sequence[Revision]
    fqdns: Sequence[Fqdn]
    #: Rule effectiveness of the year of ``last``, as its document.
    rules: Sequence[dict[str, Any]] = field(default=())
    #: The heaviest statements of ``last``, as its document.
    statements: Sequence[dict[str, Any]] = field(default=())

    @property
    def hits(self) -> int:
        return sum(day.hits or 0 for day in self.counts)

    @property
    def misses(self) -> int:
        return sum(day.misses or 0 for day in self.counts)

    @property
    def warehouse_ms(self) -> int:
        return sum(day.warehouse_ms or 0 for day in self.counts)

    @property
    def rate(self) -> float | None:
        requests = self.hits + self.misses
        return self.hits / requests if requests else None


def read_overview(tenant_id: UUID, *, days: int) -> Overview:
    """Return the overview of the last ``days`` days with log entries, or up to today without any."""
    health = TenantHealth.objects.filter(pk=tenant_id).first()
    last = (health.last_day if health else None) or now().date()
    first = dt.date.fromordinal(max(1, last.toordinal() - days + 1))
    start = dt.datetime.combine(first, dt.time(), dt.UTC)
    changes = Revision.objects.filter(
        kind__in=[RevisionKind.RULES, RevisionKind.CONFIG], tenant_id=tenant_id, changed_at__gte=start
    ).defer("document")
    return Overview(
        days=days,
        first=first,
        last=last,
        health=health,
        counts=list(
            DayRollup.objects.filter(tenant_id=tenant_id, day__range=(first, last))
            .only("day", "hits", "misses", "warehouse_ms")
            .order_by("day")
        ),
        changes=list(changes.order_by("-changed_at", "-pk")[:_CHANGES]),
        fqdns=list(Fqdn.objects.filter(tenant_id=tenant_id)),
        rules=_document(tenant_id, Kind.RULES, str(last.year)).get("rules", ()),
        statements=_document(tenant_id, Kind.DAY, last.isoformat()).get("queries", ())[:_STATEMENTS],
    )


def _document(tenant_id: UUID, kind: Kind, period: str) -> dict[str, Any]:
    """Return a summary document, or an empty one if there is none, or none that a page can read."""
    stored = read_document(tenant=tenant_id, kind=kind, period=period)
    if stored is None or stored.bytes > _MAX_DOCUMENT_BYTES:
        return {}
    body = stored.body
    try:
        if stored.file:
            with default_store().open(stored.file) as file:
                body = file.read()
    except StoreError as error:
        # The rest of the page does not need the object store.
        logger.warning("The document %s of %s cannot be read: %s", kind, period, error)
        return {}
    document: dict[str, Any] = orjson.loads(body)
    return document


def chart_of(overview: Overview, *, history: str) -> dict[str, Any]:
    """Return the data of the chart: hits, misses and rate by day, and a line for each change.

    ``history`` is the address of the tenant's history, to which a line leads.
    """
    by_day = {day.day: day for day in overview.counts}
    labels = [overview.first + dt.timedelta(days=number) for number in range(overview.days)]
    counts = [(by_day[day].hits or 0, by_day[day].misses or 0) if day in by_day else (0, 0) for day in labels]
    return {
        "labels": [day.isoformat() for day in labels],
        "bars": [
            {"label": "Hits", "color": "hit", "values": [hits for hits, _ in counts]},
            {"label": "Misses", "color": "miss", "values": [misses for _, misses in counts]},
        ],
        "line": {
            "label": "Hit rate, %",
            "values": [
                round(100 * hits / (hits + misses), 1) if hits + misses else None for hits, misses in counts
            ],
        },
        "marks": [
            {
                "at": change.changed_at.date().isoformat(),
                "text": f"{change.kind} {change.seq}: {change.action} by {change.user}",
                "href": f"{history}?kind={change.kind}&to={change.seq}",
            }
            for change in overview.changes
            # The log of today, or of more days, is still to come.
            if change.changed_at.date() <= overview.last
        ],
    }
