"""The queries of docs/analytics.md give the numbers of the documents, and the guard lets them pass."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from analytics.documents.month import month_document
from analytics.documents.opportunities import opportunities_document
from analytics.documents.rules import rules_document
from analytics.documents.users import users_document
from analytics.documents.year import daily_activity, year_document
from analytics.rollup_tables import STATEMENTS
from logs.columns import CACHE_STATUSES, COLUMNS
from logs.layout import day_start_ms
from logs.sql import guard
from tests.analytics.pipeline import (
    TENANT,
    Part,
    day_json,
    merge,
    merge_year,
    opened,
    roll_day,
    store_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs" / "analytics.md"
QUERIES = {
    match[1]: match[2]
    for match in re.finditer(r"```sql\n-- (\S+)\n(.*?)\n```", DOCUMENTATION.read_text(), re.DOTALL)
}
DAYS = (date(2026, 3, 1), date(2026, 3, 17), date(2026, 5, 2))


class Log:
    """Random entries of three days: as ``proxy_logs``, and as rollups."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, days: dict[date, Part], directory: Path
    ) -> None:
        self._connection, self.days = connection, days
        self.month = merge([days[DAYS[0]], days[DAYS[1]]], directory=directory / "month")
        self.year = merge_year(days, directory=directory / "year")

    def run(self, name: str, first: date, last: date) -> list[dict[str, Any]]:
        statement = QUERIES[name].replace("$first", f"'{first}'").replace("$last", f"'{last}'")
        guard.check(statement, self._connection)
        result = self._connection.execute(statement)
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@pytest.fixture(scope="module", params=[1, 2, 3])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    directory = tmp_path_factory.mktemp("log")
    chance = random.Random(request.param)  # noqa: S311  # reproducible, not secret
    files = {day: {"00/a.json": json.dumps(random_entries(chance, day)).encode()} for day in DAYS}
    store = store_files(directory / "store", files)
    rolled = {}
    for day in DAYS:
        _, part = roll_day(store, day, directory=directory / "built")
        assert part is not None
        rolled[day] = part
    with duckdb.connect() as connection:
        columns = ", ".join(f'"{column.name}"' for column in COLUMNS)
        connection.execute(
            f"CREATE VIEW proxy_logs AS SELECT {columns}, day FROM read_parquet("
            f"'{directory}/built/*/day.parquet', hive_partitioning = true, hive_types = {{'day': VARCHAR}})"
        )
        yield Log(connection, rolled, directory)


def random_entries(chance: random.Random, day: date) -> list[dict[str, Any]]:
    """Every status; statements that meet each list's condition; each logId once, each time in its day."""
    return [
        {
            "timestamp": day_start_ms(day) + 1000 * chance.randrange(86_400),
            "logId": f"{chance.getrandbits(64):016x}",
            "userName": chance.choice([None, "Ana", "Bo", "Zoë"]),
            "standardizedSql": chance.choice([None, *(f"SELECT {n} -- ü" for n in range(12))]),
            "cacheStatus": chance.choice([None, *CACHE_STATUSES, "HIT", *["MISS", "PASSTHROUGH"] * 4]),
            "cacheKey": chance.choice([None, "k1", "k2", "k3"]),
            "matchedRule": chance.choice([None, "r1", "r2"]),
            "matchedRuleName": chance.choice([None, "One", "Two"]),
            "statusCode": chance.choice([None, 200, 500]),
            "responseSize": chance.choice([None, -1, 0, 1, 1000, 2**40]),
            "responseTimeMs": chance.choice([None, 0, 1, 2, 15, 999]),
            "warehouseExecutionTimeMs": chance.choice([None, 0, 3, 2**31 - 1]),
        }
        for _ in range(400)
    ]


def test_a_day(log: Log) -> None:
    day = DAYS[0]
    document = day_json(log.days[day])
    records, hours = document.pop("queries"), document.pop("hourlyActivity")

    assert log.run("day", day, day) == [document]
    assert log.run("day.queries", day, day) == records
    assert log.run("day.hourlyActivity", day, day) == hours


def test_a_month(log: Log) -> None:
    first, last = date(2026, 3, 1), date(2026, 3, 31)
    with opened(log.month) as rollups:
        document = month_document(rollups, month=3)
    assert document is not None
    hours = document.pop("hourlyActivity")

    assert document.pop("month") == 3
    assert log.run("month", first, last) == [document]
    for hour in hours:
        for name in ("cacheHitAverageResponseTime", "cacheMissAverageResponseTime"):
            hour[name] = hour[name] or 0
    assert log.run("day.hourlyActivity", first, last) == hours


def test_a_year(log: Log) -> None:
    first, last = date(2026, 1, 1), date(2026, 12, 31)
    with opened(log.year) as rollups:
        document = year_document(rollups, tenant=TENANT, year=2026, activity=daily_activity(rollups))
        rules = rules_document(rollups)
        opportunities = opportunities_document(rollups, text_file=lambda day: log.days[day][STATEMENTS])
    for name in ("tenantSummaryReportID", "tenantId", "reportyears"):
        document.pop(name)

    assert log.run("year.activity", first, last) == document.pop("last365daysQueryActivity")
    assert log.run("year", first, last) == [document]
    assert log.run("rules.rules", first, last) == rules.pop("rules")
    assert log.run("rules", first, last) == [rules]
    for name, entries in opportunities.items():
        assert entries, f"no entry shows {name}"
        for entry in entries:
            entry.pop("suggestedAction")
        assert log.run(f"opportunities.{name}", first, last) == entries


def test_all_users(log: Log) -> None:
    with opened(log.year) as rollups:
        document = users_document(rollups, tenant=TENANT, generated_at=datetime(2026, 5, 3, tzinfo=UTC))

    assert log.run("users", DAYS[0], DAYS[-1]) == document["users"]


def test_every_published_query_is_compared() -> None:
    assert set(QUERIES) == {
        "day",
        "day.queries",
        "day.hourlyActivity",
        "month",
        "year",
        "year.activity",
        "rules",
        "rules.rules",
        "opportunities.repeatMisses",
        "opportunities.highCostUncached",
        "opportunities.lowHitRate",
        "users",
    }
