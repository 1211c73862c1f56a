"""The published queries that alerts compare with a threshold. Each gives one row with one ``value``.

If the value is a difference, ``before`` is what the days before the window have. Without enough data the
value is null, and the alert stays as it is.
"""

# Queries consist of constants.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from analytics.models import AlertKind
from analytics.published.queries import PublishedQuery
from analytics.reports.sql import LEAK_FINDINGS, STALE_TOTALS, leak_findings_sql, stale_totals_sql
from logs.definitions import ERROR, HIT, MEASURED_MISS, REQUEST
from logs.layout import DAY_MS, HOUR_MS
from rules.tables.warehouse import ANY_TABLES, WarehouseTables

#: The days before a window that it is compared with.
BASE_DAYS: Final = 28
#: A window with fewer requests has no hit rate, and one with fewer failed requests has no errors.
MIN_REQUESTS: Final = 50
MIN_ERRORS: Final = 3

#: The entries of the days, with whether they belong to the last `$hours` of the log. A clock that is ahead
#: would move the window, so an entry from after its day is left out. They are read again each time: memory
#: does not hold the texts of a month.
_ENTRIES: Final = f"""
WITH log AS NOT MATERIALIZED (
    SELECT cacheStatus, standardizedSql, timestamp, warehouseExecutionTimeMs
    FROM proxy_logs
    WHERE day BETWEEN $first AND $last
        AND timestamp < {DAY_MS} * (day::DATE - DATE '1970-01-01' + 1)
),
entries AS NOT MATERIALIZED (
    SELECT *, timestamp > (SELECT max(timestamp) FROM log) - {HOUR_MS} * $hours AS isRecent
    FROM log
)
"""
_RATE: Final = f"count(*) FILTER ({HIT} AND {{part}}) / nullif(count(*) FILTER ({REQUEST} AND {{part}}), 0)"

_HIT_RATE_FELL: Final = (
    _ENTRIES
    + f"""
SELECT
    round(100.0 * ({_RATE.format(part="NOT isRecent")}
        - {_RATE.format(part="isRecent")}), 1) AS value,
    round(100.0 * {_RATE.format(part="NOT isRecent")}, 1) AS before
FROM entries
HAVING count(*) FILTER ({REQUEST} AND isRecent) >= {MIN_REQUESTS}
    AND count(*) FILTER ({REQUEST} AND NOT isRecent) >= {MIN_REQUESTS}"""
)
_LOG_LATE: Final = """
SELECT ($now - max(timestamp)) // 60000 AS value
FROM proxy_logs WHERE day BETWEEN $first AND $last AND timestamp <= $now"""
_ERRORS: Final = (
    _ENTRIES
    + f"""
SELECT
    CASE WHEN count(*) FILTER ({ERROR}) < {MIN_ERRORS} THEN 0.0
        ELSE round(100.0 * count(*) FILTER ({ERROR}) / count(*), 1) END AS value
FROM entries WHERE isRecent HAVING count(*) > 0"""
)
_SAVINGS_FELL: Final = (
    _ENTRIES
    + f""",
statements AS (
    SELECT
        standardizedSql, avg(warehouseExecutionTimeMs) FILTER ({MEASURED_MISS}) AS ms,
        count(*) FILTER ({HIT} AND isRecent) AS recent, count(*) FILTER ({HIT} AND NOT isRecent) AS earlier,
        min(timestamp) AS first, max(timestamp) AS last
    FROM entries GROUP BY standardizedSql
),
saved AS (
    SELECT sum(ms * recent) AS recent, sum(ms * earlier) AS earlier
    FROM statements WHERE standardizedSql IS NOT NULL
),
earlier AS (SELECT (max(last) - min(first)) / {HOUR_MS} - $hours AS hours FROM statements)
SELECT
    round(100.0 * (1 - (coalesce(saved.recent, 0) / $hours) / (saved.earlier / earlier.hours)), 1) AS value,
    round(saved.earlier / earlier.hours, 1) AS before
FROM saved, earlier WHERE saved.earlier > 0 AND earlier.hours >= $hours"""
)


def _query(kind: AlertKind, about: str, sql: str) -> PublishedQuery:
    text = sql.strip()
    return PublishedQuery(
        name=f"alerts.{kind}",
        about=about,
        text=text,
        parameters=[parameter for parameter in ("first", "last", "hours", "now") if f"${parameter}" in text],
        fields=["value", "before"] if "AS before" in text else ["value"],
    )


def _count_leaks(findings: str) -> str:
    return f"SELECT count(*) AS value FROM (\n{findings}\n) WHERE grade = 'certain'"


def _share_at_risk(totals: str) -> str:
    return f"SELECT round(100.0 * sum(atRisk) / nullif(sum(hits), 0), 2) AS value\nFROM (\n{totals}\n)"


_QUERIES: Final = (
    _query(
        AlertKind.HIT_RATE_FELL,
        "Points by which the hit rate of the last $hours hours is below the hit rate of the days before "
        f"(`before`, in percent). Both parts need {MIN_REQUESTS} requests.",
        _HIT_RATE_FELL,
    ),
    _query(AlertKind.LOG_LATE, "Minutes since the newest entry; $now is in epoch milliseconds.", _LOG_LATE),
    _query(
        AlertKind.ERRORS,
        "The percentage of log entries that failed in the last $hours hours; 0 if fewer than "
        f"{MIN_ERRORS} did.",
        _ERRORS,
    ),
    _query(
        AlertKind.STALE_RISK,
        "The percentage of hits (with an age in the log) that were older than a change of a table "
        "that they read. With `warehouse.database` or `views`, the report of stale hits has the query.",
        _share_at_risk(STALE_TOTALS),
    ),
    _query(
        AlertKind.LEAK,
        "Statements whose result depends on the user and was served to several users. For a tenant with "
        "`perUserTables`, statements that read such a table count too, as in the report of leaks.",
        _count_leaks(LEAK_FINDINGS),
    ),
    _query(
        AlertKind.SAVINGS_FELL,
        "Percent by which the saved warehouse time per hour of the last $hours hours is below the days "
        "before (`before`, in milliseconds). A hit saves the mean warehouse time of its statement. The days "
        "before must be as long.",
        _SAVINGS_FELL,
    ),
)
#: By kind of alert. The kinds that are missing here are not about entries of the log.
ALERT_QUERIES: Final[Mapping[str, PublishedQuery]] = {
    query.name.removeprefix("alerts."): query for query in _QUERIES
}


def alert_sql(
    kind: str, *, first: date, last: date, hours: int, now_ms: int, warehouse: WarehouseTables = ANY_TABLES
) -> str:
    """Return the statement of a kind of alert for these days, both included."""
    if kind == "leak":
        return _count_leaks(leak_findings_sql(first=first, last=last, warehouse=warehouse))
    if kind == "stale-risk":
        return _share_at_risk(stale_totals_sql(first=first, last=last, warehouse=warehouse))
    text = ALERT_QUERIES[kind].text
    values = {"first": f"'{first}'", "last": f"'{last}'", "hours": str(hours), "now": str(now_ms)}
    for name, value in values.items():
        text = text.replace(f"${name}", value)
    return text


class NoNumber(StrEnum):
    """Why there is no amount of money."""

    NO_PRICE = "no-price"
    NO_PRICED_DAY = "no-priced-day"
    FEW_DAYS = "few-days"


AlertUnit: TypeAlias = Literal["points", "minutes", "percent", "statements", "builds", "money"]
AlertWindowUnit: TypeAlias = Literal["hours", "days"]

#: The kinds of a tenant's alerts.
TENANT_KINDS: Final = [kind for kind in AlertKind.values if kind != AlertKind.QUEUE_AGE]
_MAX_THRESHOLD: Final[Mapping[AlertUnit, float]] = {
    "points": 100,
    "percent": 100,
    "minutes": 525_600,
    "statements": 1_000_000,
    "builds": 1_000_000,
    "money": 1_000_000_000_000,
}
#: A firing ends this far on the other side of the threshold, so that a number that swings about the threshold
#: sends no messages.
_MARGIN: Final = 0.1


@dataclass(frozen=True, slots=True)
class KindOfAlert:
    """A kind of alert: what its number is measured in, and the defaults of an alert of this kind.

    Attributes:
        unit: of the number and the threshold.
        query: the name of the published query of the number; None if it has none.
        fires_below: it fires while the number is below the threshold.
        is_compared: it compares a window with the days before.
        is_service: the number is about the whole service.
    """

    kind: str
    unit: AlertUnit
    threshold: float
    max_threshold: float
    window_unit: AlertWindowUnit | None
    window: int | None
    max_window: int | None
    query: str | None
    fires_below: bool
    is_compared: bool
    is_service: bool

    def fires(self, value: float, *, threshold: float, already: bool) -> bool:
        """Return True if an alert fires with this number. ``already``: it has been firing."""
        if self.fires_below:
            return value <= (1 + _MARGIN) * threshold if already else value < threshold
        return value >= (1 - _MARGIN) * threshold if already else value >= threshold


def _kind(
    kind: AlertKind,
    unit: AlertUnit,
    threshold: float,
    *,
    hours: int | None = None,
    days: int | None = None,
    fires_below: bool = False,
    is_compared: bool = False,
    is_service: bool = False,
) -> KindOfAlert:
    query = ALERT_QUERIES.get(kind)
    return KindOfAlert(
        kind=kind.value,
        unit=unit,
        threshold=float(threshold),
        max_threshold=float(_MAX_THRESHOLD[unit]),
        window_unit="hours" if hours else "days" if days else None,
        window=hours or days,
        max_window=168 if hours else 7 if days else None,
        query=query.name if query else None,
        fires_below=fires_below,
        is_compared=is_compared,
        is_service=is_service,
    )


_KINDS: Final = (
    _kind(AlertKind.HIT_RATE_FELL, "points", 10, hours=24, is_compared=True),
    _kind(AlertKind.LOG_LATE, "minutes", 120),
    _kind(AlertKind.ERRORS, "percent", 5, hours=1),
    _kind(AlertKind.STALE_RISK, "percent", 1, days=1),
    _kind(AlertKind.LEAK, "statements", 1, days=1),
    _kind(AlertKind.SAVINGS_FELL, "percent", 30, hours=168, is_compared=True),
    _kind(AlertKind.BUILD_FAILED, "builds", 1),
    _kind(AlertKind.BILL, "money", 1_000),
    _kind(AlertKind.BILL_FORECAST, "money", 1_000),
    _kind(AlertKind.SAVINGS_LOW, "money", 100, fires_below=True),
)
#: In the order of the documentation.
KINDS: Final[Mapping[str, KindOfAlert]] = {kind.kind: kind for kind in _KINDS}
#: The kinds of the whole service, whose numbers have another meaning.
SERVICE_KINDS: Final[Mapping[str, KindOfAlert]] = {
    kind.kind: kind
    for kind in (
        _kind(AlertKind.LOG_LATE, "minutes", 60, is_service=True),
        _kind(AlertKind.BUILD_FAILED, "builds", 1, is_service=True),
        _kind(AlertKind.QUEUE_AGE, "minutes", 30, is_service=True),
    )
}
