"""How many requests there were in a span, how they ended, and how long they took, in buckets of time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from analytics.reports.reading import ReportQuery
from logs.audit import REQUESTS_KEY, record_read
from logs.definitions import ERROR, HIT, MISS, NOT_CACHED, REQUEST, TIMED, WAREHOUSE_TIME
from logs.layout import DAY_MS, HOUR_MS
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, from_epoch_ms

if TYPE_CHECKING:
    from analytics.reports.reading import LogReader, Span
    from analytics.reports.traffic import TrafficFilter

_MINUTE_MS: Final = 60_000
_STEPS_MS: Final = (
    *(1_000, 5_000, 15_000, _MINUTE_MS, 5 * _MINUTE_MS, 15 * _MINUTE_MS),
    *(HOUR_MS, 3 * HOUR_MS, 12 * HOUR_MS, DAY_MS),
)
_MOST_BUCKETS: Final = 100


class RequestBucket(JsonStruct):
    """The requests of one bucket. Response times are of hits and misses with one; null without any."""

    at: Annotated[Timestamp, Meta(description="When the bucket begins.")]
    entries: Annotated[Count, Meta(description="Entries of every status.")]
    hits: Count
    misses: Annotated[Count, Meta(description=f"{MISS.text}.")]
    not_cached: Annotated[Count, Meta(description=f"Of `misses`: {NOT_CACHED.text}.")]
    errors: Count
    median_ms: Annotated[float | None, Meta(description="The median of `responseTimeMs`.")]
    p95_ms: Annotated[float | None, Meta(description="95 % of `responseTimeMs` are not above it.")]
    warehouse_ms: Annotated[int, Meta(description="The sum of `warehouseExecutionTimeMs`.")]


class RequestHistogram(JsonStruct):
    """Buckets of equal length without gaps, oldest first. The first and the last may be cut by the span."""

    step_seconds: Annotated[int, Meta(ge=1)]
    buckets: list[RequestBucket]
    outside: Annotated[Count, Meta(description="Entries whose timestamp is null or outside of the span.")]
    queries: list[ReportQuery]


def make_histogram(log: LogReader, *, span: Span, matching: TrafficFilter) -> RequestHistogram:
    """Count the requests of a span. The read of the log is recorded in the audit before it happens.

    Raises:
        ApiError: the query failed.
    """
    record_read(log.reader, tenant=log.tenant, key=f"{REQUESTS_KEY}{span}")
    begins, ends = span.bounds
    step = next(step for step in _STEPS_MS if -(-ends // step) - begins // step <= _MOST_BUCKETS)
    sql = f"""
SELECT
    CASE WHEN timestamp >= {begins} AND timestamp < {ends} THEN timestamp // {step} * {step} END AS at,
    count(*) AS entries,
    count(*) FILTER ({HIT}) AS hits,
    count(*) FILTER ({MISS}) AS misses,
    count(*) FILTER ({NOT_CACHED}) AS notCached,
    count(*) FILTER ({ERROR}) AS errors,
    quantile_cont(responseTimeMs, [0.5, 0.95]) FILTER ({REQUEST} AND {TIMED}) AS medianAndP95Ms,
    coalesce({WAREHOUSE_TIME}, 0) AS warehouseMs
FROM proxy_logs WHERE {" AND ".join([*span.conditions(), *matching.conditions()])}
GROUP BY 1 ORDER BY 1""".strip()  # noqa: S608  # constants, numbers and quoted values
    counts = {row["at"]: row for row in log.rows(sql)}
    outside = counts.pop(None, None)
    return RequestHistogram(
        step_seconds=step // 1000,
        buckets=[_bucket(at, counts.get(at)) for at in range(begins // step * step, ends, step)],
        outside=outside["entries"] if outside else 0,
        queries=[ReportQuery(name="counts", sql=sql)],
    )


def _bucket(at: int, row: Mapping[str, Any] | None) -> RequestBucket:
    found = row or {}
    median, p95 = found.get("medianAndP95Ms") or (None, None)
    return RequestBucket(
        at=format_timestamp(from_epoch_ms(at)),
        entries=found.get("entries", 0),
        hits=found.get("hits", 0),
        misses=found.get("misses", 0),
        not_cached=found.get("notCached", 0),
        errors=found.get("errors", 0),
        median_ms=median,
        p95_ms=p95,
        warehouse_ms=found.get("warehouseMs", 0),
    )
