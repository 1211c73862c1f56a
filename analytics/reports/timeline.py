"""Timeline: hits and misses per hour or day, with the changes of rules and the markers that fell in it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from accounts.models import Revision
from accounts.models.history import RevisionKind
from analytics.summaries.numbers import rate
from rules.models import Marker
from tenantadmin.lib.core.timestamps import epoch_ms, format_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from analytics.reports.reading import LogReader, Window

STEPS: Final = {"hour": dt.timedelta(hours=1), "day": dt.timedelta(days=1)}

_COUNTS: Final = """
SELECT
    CASE WHEN timestamp BETWEEN {start} AND {end} THEN timestamp // {step} * {step} END AS at,
    count(*) FILTER (cacheStatus = 'HIT') AS hits,
    count(*) FILTER (cacheStatus IN ('MISS', 'BYPASS', 'PASSTHROUGH')) AS misses
FROM proxy_logs WHERE day BETWEEN '{first}' AND '{last}' GROUP BY 1 ORDER BY 1"""


def timeline(log: LogReader, *, window: Window, step: str) -> dict[str, Any]:
    """Return ``{from, to, step, buckets, outside, queries}``.

    Each bucket is ``{at, hits, misses, hitRate, changes, markers}``: ``hitRate`` is null without requests,
    ``markers`` counts by target rule. ``outside`` counts entries whose timestamp is null or outside of the
    days.

    Raises:
        ApiError: the query failed.
    """
    length = STEPS[step]
    start = dt.datetime.combine(window.first, dt.time(), dt.UTC)
    end = start + dt.timedelta(days=(window.last - window.first).days + 1)
    sql = _COUNTS.format(
        start=epoch_ms(start),
        end=epoch_ms(end) - 1,
        step=length // dt.timedelta(milliseconds=1),
        first=window.first,
        last=window.last,
    ).strip()
    counts = {row["at"]: row for row in log.rows(sql)}
    outside = counts.pop(None, {"hits": 0, "misses": 0})
    changes: dict[dt.datetime, list[dict[str, Any]]] = {}
    for moment, change in _changes(log.tenant, start, end):
        changes.setdefault(_bucket(moment, start, length), []).append(change)
    markers: dict[dt.datetime, Counter[str]] = {}
    made = Marker.objects.filter(tenant=log.tenant, invalidated_at__gte=start, invalidated_at__lt=end)
    for moment, target in made.order_by().values_list("invalidated_at", "target_rule_id").iterator():
        markers.setdefault(_bucket(moment, start, length), Counter())[target] += 1
    buckets = []
    for number in range((end - start) // length):
        at = start + number * length
        row = counts.get(epoch_ms(at), {"hits": 0, "misses": 0})
        hits, misses = row["hits"], row["misses"]
        buckets.append(
            {
                "at": format_timestamp(at),
                "hits": hits,
                "misses": misses,
                "hitRate": rate(hits, hits + misses) if hits + misses else None,
                "changes": changes.get(at, []),
                "markers": dict(sorted(markers.get(at, Counter()).items())),
            }
        )
    return {
        **window.as_json(),
        "step": step,
        "buckets": buckets,
        "outside": {"hits": outside["hits"], "misses": outside["misses"]},
        "queries": [{"name": "counts", "sql": sql}],
    }


def _changes(
    tenant: UUID, start: dt.datetime, end: dt.datetime
) -> Iterator[tuple[dt.datetime, dict[str, Any]]]:
    """Yield the changes of rules and configuration, oldest first, without their documents."""
    rows = Revision.objects.filter(
        kind__in=[RevisionKind.RULES, RevisionKind.CONFIG],
        tenant_id=tenant,
        changed_at__gte=start,
        changed_at__lt=end,
    ).order_by("changed_at", "pk")
    for kind, seq, action, user, changed_at in rows.values_list(
        "kind", "seq", "action", "user", "changed_at"
    ):
        change = {"kind": kind, "seq": seq, "action": action, "userId": user}
        yield changed_at, {**change, "changedAt": format_timestamp(changed_at)}


def _bucket(moment: dt.datetime, start: dt.datetime, length: dt.timedelta) -> dt.datetime:
    return start + (moment - start) // length * length
