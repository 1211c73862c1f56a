"""Which programs and users ask: their requests, the warehouse time they take, and what is spared for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from analytics.reports.reading import ReportQuery
from analytics.reports.savings import Money, find_source, read_savings
from analytics.reports.traffic import program_condition
from logs.definitions import (
    HIT,
    MEASURED_MISS,
    MISS,
    NOT_CACHED,
    REQUEST,
    SPARED,
    STORED_MISS,
    WAREHOUSE_TIME,
    hash_sql,
)
from logs.programs import PROGRAM
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from analytics.reports.reading import LogReader, Window

By: TypeAlias = Literal["program", "user"]
_NAMES: Final[dict[By, str]] = {"program": PROGRAM, "user": "nullif(userName, '')"}
#: The rows of an answer. The others are one more.
_MOST: Final = 50


class CallerSums(JsonStruct):
    """The requests of some callers, and their shares of the bill."""

    requests: Count
    hits: Count
    stored_misses: Annotated[Count, Meta(description=STORED_MISS.text)]
    not_cached: Annotated[Count, Meta(description=f"{NOT_CACHED.text}.")]
    warehouse_ms: Annotated[Count, Meta(description="How long their statements ran.")]
    spared_ms: Annotated[
        Count, Meta(description="Hits and waits, each with the mean warehouse time of its statement.")
    ]
    cost: Annotated[Money, Meta(description="The share of the bill, by `warehouseMs`.")] = None
    saved: Annotated[Money, Meta(description="The share of what is saved on the bill, by `sparedMs`.")] = None


class Caller(CallerSums):
    name: Annotated[str | None, Meta(description="Null: requests that name none.")]


class Callers(JsonStruct):
    """Who asks, the most warehouse time first."""

    from_: date
    to: date
    currency: str | None
    callers: Annotated[list[Caller], Meta(description=f"At most {_MOST}.")]
    rest: Annotated[CallerSums | None, Meta(description="All others together.")]
    text: Annotated[str, Meta(description="What the money is, for people to read.")]
    queries: list[ReportQuery]


def list_callers(log: LogReader, *, window: Window, by: By) -> Callers:
    """Return the programs or users of some days. What they cost is their share of the savings' two bills.

    Raises:
        ApiError: the query failed.
        BadRequest, ServiceBusy: see `read_savings`.
    """
    sql = f"""
WITH entries AS (
    SELECT {_NAMES[by]} AS name, standardizedSql, warehouseExecutionTimeMs AS ms,
        {REQUEST} AS isRequest, {HIT} AS isHit, {STORED_MISS} AS isStored, {NOT_CACHED} AS isNotCached,
        {MISS} AS isMiss, {MEASURED_MISS} AS isMeasured, {SPARED} AS isSpared
    FROM proxy_logs WHERE day BETWEEN '{window.first}' AND '{window.last}'
),
means AS (SELECT standardizedSql, avg(ms) AS mean FROM entries WHERE isMeasured GROUP BY standardizedSql)
SELECT
    name,
    count(*) FILTER (isRequest) AS requests,
    count(*) FILTER (isHit) AS hits,
    count(*) FILTER (isStored) AS storedMisses,
    count(*) FILTER (isNotCached) AS notCached,
    coalesce(sum(ms) FILTER (isMiss), 0)::BIGINT AS warehouseMs,
    coalesce(sum(mean) FILTER (isSpared), 0)::BIGINT AS sparedMs
FROM entries LEFT JOIN means USING (standardizedSql) GROUP BY name
HAVING requests > 0 ORDER BY warehouseMs DESC, requests DESC, name""".strip()  # noqa: S608  # constants and days
    rows = log.rows(sql)
    bills = _read_bills(log, window)
    for name, measure in (("cost", "warehouseMs"), ("saved", "sparedMs")):
        _share(rows, bills[name], name, measure)
    callers = [msgspec.convert(row, Caller) for row in rows]
    first, others = callers[:_MOST], callers[_MOST:]
    return Callers(
        from_=window.first,
        to=window.last,
        currency=bills["currency"],
        callers=first,
        rest=_add(others) if others else None,
        text="Cost is the share of the bill by warehouse time, and saved the share of what was saved by the "
        "time that was spared. The warehouse bills its time awake, which no caller has alone.",
        queries=[ReportQuery(name=f"{by}s", sql=sql)],
    )


def find_statements(log: LogReader, *, window: Window, program: str) -> list[str]:
    """Return the hashes (MD5) of the statements that a program sent in some days, at most 10,000.

    Raises:
        ApiError: the query failed.
    """
    rows = log.rows(
        f"SELECT {hash_sql()} AS hash FROM proxy_logs"  # noqa: S608  # days and quoted values
        f" WHERE day BETWEEN '{window.first}' AND '{window.last}' AND standardizedSql IS NOT NULL"
        f" AND {program_condition(program)} GROUP BY standardizedSql"
        f" ORDER BY {WAREHOUSE_TIME} DESC NULLS LAST, hash LIMIT 10000"
    )
    return [row["hash"] for row in rows]


def _read_bills(log: LogReader, window: Window) -> dict[str, Any]:
    """Return ``currency``, and the money of the days: billed with the cache (``cost``) and ``saved``."""
    source = find_source(tenant=log.tenant, first=window.first, last=window.last, step="month")
    _, body = read_savings(log.store, source, reader=log.reader)
    savings = msgspec.json.decode(body)
    total = savings["total"]
    return {
        "currency": savings["currency"],
        "cost": total["withCache"]["money"],
        "saved": total["saved"]["money"],
    }


def _share(rows: Sequence[dict[str, Any]], amount: str | None, name: str, measure: str) -> None:
    """Give each row its share ``name`` of an amount of money, by a measure of the row."""
    whole = sum(row[measure] for row in rows)
    if amount is None or not whole:
        return
    for row in rows:
        row[name] = str((Decimal(amount) * row[measure] / whole).quantize(Decimal(amount)))


def _add(callers: Sequence[Caller]) -> CallerSums:
    sums: dict[str, Any] = {}
    for name in CallerSums.__struct_fields__:
        values = [getattr(caller, name) for caller in callers]
        if name in {"cost", "saved"}:
            sums[name] = None if None in values else str(sum(map(Decimal, values)))
        else:
            sums[name] = sum(values)
    return CallerSums(**sums)
