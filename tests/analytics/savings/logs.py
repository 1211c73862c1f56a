"""Random logs and prices for savings, and the service's answer for rows in memory."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import to_builtins

from accounts.tenants.pricing import Pricing
from analytics.numbers.executions import keep_sql
from analytics.reports.savings import SavingsWindow, savings_document
from analytics.reports.savings_sql import KEPT_SAVINGS_SQL, SAVINGS_SQL, days_between, fill_savings
from logs.columns import CACHE_STATUSES
from logs.layout import day_start_ms
from logs.quoting import quote_texts
from logs.sql import guard

if TYPE_CHECKING:
    import duckdb

    from tests.analytics.savings.judge import Price, Row

_TEXTS = ("day", "standardizedSql", "serverHostname", "cacheStatus", "matchedRule", "operationType")

#: The first days of windows: in a month, at its end, and at the end of a year.
FIRST_DAYS = (date(2026, 3, 10), date(2026, 2, 28), date(2025, 12, 31))
#: What the judge computes.
JUDGED = (
    "currency",
    "hours",
    "autoSuspend",
    "total",
    "days",
    "months",
    "rules",
    "unmeasured",
    "unmeasuredShare",
)
_MINUTE = 60_000
_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(_TEXTS, pa.string()),
    "timestamp": pa.int64(),
    "warehouseExecutionTimeMs": pa.int32(),
}


def make_row(day: date, at: int | None, status: str | None, **fields: Any) -> Row:
    """Return an entry of a day. ``at`` is in milliseconds after its midnight."""
    return {
        "day": day.isoformat(),
        "timestamp": None if at is None else day_start_ms(day) + at,
        "standardizedSql": "SELECT 1",
        "serverHostname": "h",
        "cacheStatus": status,
        "matchedRule": None,
        "warehouseExecutionTimeMs": None,
        **fields,
    }


def random_rows(chance: random.Random, first: date, last: date) -> list[Row]:
    """Return entries of the days of a window and of two days around it, in no order.

    Times and durations are often whole minutes, so that sessions often touch exactly.
    """
    days = [first + timedelta(number) for number in range(-2, (last - first).days + 2)]
    anchors = [_MINUTE * chance.randrange(24 * 60) for _ in range(chance.choice([1, 2, 4]))] + [0]
    return [
        make_row(
            chance.choice(days),
            chance.choice(
                [
                    None,
                    chance.randrange(86_400_000),
                    chance.randrange(-300_000_000, 400_000_000),
                    *[chance.choice(anchors) + _MINUTE * chance.randrange(-12, 12)] * 4,
                    *[chance.choice(anchors) + chance.randrange(-400_000, 400_000)] * 2,
                ]
            ),
            chance.choice([None, *CACHE_STATUSES, *["HIT", "MISS", "PASSTHROUGH"] * 4, "HOLD", "ERROR"]),
            standardizedSql=chance.choice([None, "a", "a", "b", "b", "c", "d"]),
            serverHostname=chance.choice([None, "h1", "h1", "h1", "h2"]),
            matchedRule=chance.choice([None, "r1", "r1", "r2"]),
            warehouseExecutionTimeMs=chance.choice(
                [None, None, -1, 0, 1, 999, _MINUTE, 5 * _MINUTE, 7_200_000, chance.choice([3, 2**31 - 1])]
            ),
        )
        for _ in range(chance.choice([0, 1, 2, 5, 20, 60]))
    ]


def random_prices(chance: random.Random, first: date, last: date) -> list[Price]:
    """Return prices that begin before, in or after a window: up to three for all hosts, and of one host."""
    currency = chance.choice(["USD", "USD", "JPY", "KWD"])
    hosts = [{}] if chance.random() < 0.6 else [{}, {"host": chance.choice(["h1", "h2", "it's $last"])}]
    return [{**price, **host} for host in hosts for price in _random_prices(chance, first, last, currency)]


def _random_prices(chance: random.Random, first: date, last: date, currency: str) -> list[Price]:
    starts = sorted(chance.sample(range(-3, (last - first).days + 2), chance.choice([0, 1, 1, 2, 3])))
    return [
        {
            "from": (first + timedelta(start)).isoformat(),
            "currency": currency,
            "perHour": chance.choice(["3.00", "0", "0.0001", "12.5", "7", "999999999.9999"]),
            "billing": chance.choice(["suspending", "suspending", "suspending", "busy", "always-on"]),
            **(
                {"autoSuspendSeconds": chance.choice([0, 1, 60, 300, 600, 90_000])}
                if chance.random() < 0.8
                else {}
            ),
            **(
                {"minimumSeconds": chance.choice([0, 1, 60, 3_600, 100_000])} if chance.random() < 0.8 else {}
            ),
        }
        for start in starts
    ]


def answer(
    connection: duckdb.DuckDBPyConnection,
    rows: Iterable[Row],
    prices: Sequence[Price],
    first: date,
    last: date,
    *,
    step: str = "day",
) -> Any:
    """Return what the service answers, without what the judge does not compute."""
    connection.register("proxy_logs", pa.Table.from_pylist(list(rows), schema=pa.schema(_TYPES)))
    pricing = Pricing.of(prices)
    sql = fill_savings(SAVINGS_SQL, first=first, before=first - timedelta(1), last=last, pricing=pricing)
    guard.check(sql, connection)
    result = connection.execute(sql)
    names = [column[0] for column in result.description]
    savings = savings_document(
        [dict(zip(names, row, strict=True)) for row in result.fetchall()],
        window=SavingsWindow(from_=first, to=last, days_without_data=[]),
        step=step,
        pricing=pricing,
        prices=prices,
        sql=sql,
    )
    return {name: value for name, value in to_builtins(savings).items() if name in JUDGED}


def both_answers(
    connection: duckdb.DuckDBPyConnection,
    rows: Iterable[Row],
    prices: Sequence[Price],
    first: date,
    last: date,
    *,
    directory: Path,
) -> tuple[list[Any], list[Any]]:
    """Return the rows from what is kept of each day, and those of the published query."""
    connection.register("proxy_logs", pa.Table.from_pylist(list(rows), schema=pa.schema(_TYPES)))
    before = first - timedelta(1)
    files = []
    for day in days_between(before, last):
        files.append(f"{directory}/{day}.parquet")
        connection.execute(f"COPY ({keep_sql(day)}) TO '{files[-1]}'")
    kept, logged = (
        connection.execute(
            fill_savings(text, first=first, before=before, last=last, pricing=Pricing.of(prices))
        ).fetchall()
        for text in (KEPT_SAVINGS_SQL.replace("$kept", quote_texts(files)), SAVINGS_SQL)
    )
    return kept, logged
