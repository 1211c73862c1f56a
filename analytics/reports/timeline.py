"""Hits and misses over time, beside the changes of the rules."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Final, Literal, TypeAlias
from uuid import UUID

from msgspec import Meta

from accounts.models import Revision
from accounts.models.history import RevisionKind
from analytics.numbers.tables import rate
from analytics.reports.reading import LogReader, ReportHead, ReportQuery, Window
from logs.definitions import HIT, MISS, NOT_CACHED
from rules.models import Marker
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, end_of_day, epoch_ms, format_timestamp

TENANT_REVISION_KINDS: Final = (RevisionKind.RULES.value, RevisionKind.CONFIG.value)
TimelineStep: TypeAlias = Literal["hour", "day"]
STEPS: Final[dict[TimelineStep, dt.timedelta]] = {
    "hour": dt.timedelta(hours=1),
    "day": dt.timedelta(days=1),
}

#: A time belongs to its day's objects, as in summaries: so a bucket is the same whatever the window is.
_DAY: Final = "epoch_ms(CAST(day AS TIMESTAMP))"
_STARTS: Final[dict[TimelineStep, str]] = {
    "hour": f"CASE WHEN timestamp // 86400000 * 86400000 = {_DAY} THEN timestamp // 3600000 * 3600000 END",
    "day": _DAY,
}
_COUNTS: Final = f"""
SELECT
    {{at}} AS at,
    count(*) FILTER ({HIT}) AS hits,
    count(*) FILTER ({MISS}) AS misses,
    count(*) FILTER ({NOT_CACHED}) AS notCached
FROM proxy_logs WHERE day BETWEEN '{{first}}' AND '{{last}}' GROUP BY 1 ORDER BY 1"""  # noqa: S608  # only constants


class TimelineChange(JsonStruct):
    kind: Annotated[str, one_of(TENANT_REVISION_KINDS)]
    seq: Count
    action: str
    text: Annotated[str, Meta(description="What the change did, in words.")] = ""
    user_id: str
    changed_at: Timestamp


class TimelineBucket(JsonStruct):
    at: Timestamp
    hits: Count
    misses: Annotated[Count, Meta(description=f"{MISS.text}.")]
    not_cached: Annotated[Count, Meta(description=f"Of `misses`: {NOT_CACHED.text}.")]
    hit_rate: Annotated[float, Meta(ge=0, le=1)] | None
    changes: list[TimelineChange]
    markers: Annotated[dict[str, int], Meta(description="Markers by target rule.")]


class OutsideCounts(JsonStruct):
    hits: Count
    misses: Count


class Timeline(ReportHead):
    step: TimelineStep
    buckets: list[TimelineBucket]
    outside: Annotated[
        OutsideCounts, Meta(description="By hour: entries whose timestamp is null or outside of their day.")
    ]


def timeline(log: LogReader, *, window: Window, step: TimelineStep) -> Timeline:
    """Return hits and misses per hour or day. A bucket's hit rate is null without requests.

    Raises:
        ApiError: the query failed.
    """
    length = STEPS[step]
    start = dt.datetime.combine(window.first, dt.time(), dt.UTC)
    end = end_of_day(window.last)
    sql = _COUNTS.format(at=_STARTS[step], first=window.first, last=window.last).strip()
    counts = {row["at"]: row for row in log.rows(sql)}
    outside = counts.pop(None, {"hits": 0, "misses": 0})
    changes: dict[dt.datetime, list[TimelineChange]] = {}
    for moment, change in _changes(log.tenant, start, end):
        changes.setdefault(_bucket(moment, start, length), []).append(change)
    markers: dict[dt.datetime, Counter[str]] = {}
    made = Marker.objects.filter(tenant=log.tenant, invalidated_at__gte=start, invalidated_at__lte=end)
    for moment, target in made.order_by().values_list("invalidated_at", "target_rule_id").iterator():
        markers.setdefault(_bucket(moment, start, length), Counter())[target] += 1
    buckets = []
    for number in range((end - start) // length + 1):
        at = start + number * length
        row = counts.get(epoch_ms(at), {"hits": 0, "misses": 0, "notCached": 0})
        hits, misses = row["hits"], row["misses"]
        buckets.append(
            TimelineBucket(
                at=format_timestamp(at),
                hits=hits,
                misses=misses,
                not_cached=row["notCached"],
                hit_rate=rate(hits, hits + misses) if hits + misses else None,
                changes=changes.get(at, []),
                markers=dict(sorted(markers.get(at, Counter()).items())),
            )
        )
    return Timeline(
        from_=window.first,
        to=window.last,
        step=step,
        buckets=buckets,
        outside=OutsideCounts(hits=outside["hits"], misses=outside["misses"]),
        queries=[ReportQuery(name="counts", sql=sql)],
    )


def _changes(
    tenant: UUID, start: dt.datetime, end: dt.datetime
) -> Iterator[tuple[dt.datetime, TimelineChange]]:
    """Yield the changes of rules and configuration, oldest first."""
    rows = Revision.objects.filter(
        kind__in=TENANT_REVISION_KINDS,
        tenant_id=tenant,
        changed_at__gte=start,
        changed_at__lte=end,
    ).defer("document")
    for row in rows.order_by("changed_at", "pk"):
        yield (
            row.changed_at,
            TimelineChange.of(row, user_id=row.user),
        )


def _bucket(moment: dt.datetime, start: dt.datetime, length: dt.timedelta) -> dt.datetime:
    return start + (moment - start) // length * length
