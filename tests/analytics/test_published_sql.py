"""The published queries give the numbers of the documents, the guard allows them, and the docs have them."""

from __future__ import annotations

import json
import random
import re
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from msgspec import to_builtins

from analytics.numbers.documents import month_document
from analytics.numbers.tables import LAST_MS, STATEMENTS
from analytics.numbers.yearly import (
    daily_activity,
    opportunities_document,
    rules_document,
    users_document,
    year_document,
)
from analytics.published.queries import QUERIES
from logs.columns import COLUMNS
from logs.sql import guard
from scripts.queries import render
from tests.analytics.pipeline import TENANT, Part, day_json, merge, merge_year, opened, roll_day, store_files
from tests.analytics.random_log import DAYS, USERS, random_entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs"
#: The first day whose activity the year 2026 can show.
FIRST_ACTIVITY = date(2025, 1, 2)


class Log:
    """Random entries of three days, as ``proxy_logs`` and as rollups."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, days: dict[date, Part], directory: Path
    ) -> None:
        self._connection, self.days = connection, days
        first = min(days)
        of_month = [part for day, part in days.items() if (day.year, day.month) == (first.year, first.month)]
        self.month = merge(of_month, directory=directory / "month")
        self.year = merge_year(days, directory=directory / "year")

    def run(self, name: str, first: date, last: date, *, user: str | None = None) -> list[dict[str, Any]]:
        statement = QUERIES[name].over(first, last, user=user)
        guard.check(statement, self._connection)
        result = self._connection.execute(statement)
        names = [column[0] for column in result.description]
        assert names == QUERIES[name].fields
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@pytest.fixture(scope="module", params=[1, 2, 3])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    chance = random.Random(request.param)  # noqa: S311  # reproducible, not secret
    entries = {day: random_entries(chance, day) for day in DAYS}
    with make_log(entries, tmp_path_factory.mktemp("log")) as log:
        yield log


@contextmanager
def make_log(entries: Mapping[date, list[dict[str, Any]]], directory: Path) -> Iterator[Log]:
    files = {day: {"00/a.json": json.dumps(own).encode()} for day, own in entries.items()}
    store = store_files(directory / "store", files)
    rolled = {}
    for day in entries:
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


@pytest.mark.parametrize("user", [None, *USERS])
def test_the_queries_of_a_day(log: Log, user: str | None) -> None:
    day = DAYS[0]
    document = day_json(log.days[day], user=user)
    records, hours = document.pop("queries"), document.pop("hourlyActivity")

    assert log.run("day", day, day, user=user) == [document]
    assert log.run("day.queries", day, day, user=user) == records
    assert log.run("day.hourlyActivity", day, day, user=user) == hours


def test_times_before_1970_count_in_the_hour_of_their_prefix(tmp_path: Path) -> None:
    day = date(1969, 12, 31)
    times = [-86_400_000, -82_800_001, -3_600_001, -1]
    with make_log({day: [{"timestamp": time, "cacheStatus": "HIT"} for time in times]}, tmp_path) as log:
        hours = day_json(log.days[day])["hourlyActivity"]
    assert [hour["totalHits"] for hour in hours] == [4, *[0] * 23]


@pytest.mark.parametrize("user", [None, *USERS])
def test_the_queries_of_a_month(log: Log, user: str | None) -> None:
    first, last = date(2026, 3, 1), date(2026, 3, 31)
    with opened(log.month, user=user) as rollups:
        document = to_builtins(month_document(rollups, month=3))
    hours = document.pop("hourlyActivity")

    assert document.pop("month") == 3
    assert log.run("month", first, last, user=user) == [document]
    assert log.run("month.hourlyActivity", first, last, user=user) == hours


@pytest.mark.parametrize("user", USERS)
def test_the_queries_of_a_users_year(log: Log, user: str) -> None:
    first, last = date(2026, 1, 1), date(2026, 12, 31)
    with opened(log.year, user=user) as rollups:
        document = to_builtins(
            year_document(rollups, tenant=TENANT, year=2026, activity=daily_activity(rollups))
        )
    for name in ("tenantSummaryReportID", "tenantId", "reportyears"):
        document.pop(name)

    assert log.run("year.last365daysQueryActivity", FIRST_ACTIVITY, last, user=user) == document.pop(
        "last365daysQueryActivity"
    )
    assert log.run("year", first, last, user=user) == [document]


def test_negative_warehouse_times_are_rounded_half_up(log: Log) -> None:
    (rule,) = (rule for rule in log.run("rules.rules", DAYS[0], DAYS[-1]) if rule["ruleId"] == "r3")

    assert rule["warehouseTimeSavedMs"] == -3
    with opened(log.year) as rollups:
        assert rule in to_builtins(rules_document(rollups).rules)


def test_times_outside_of_the_years_1970_to_9999_are_null(tmp_path: Path) -> None:
    day = DAYS[0]
    times: list[list[int | None]] = [
        [2**62],
        [-(2**62)],
        [0],
        [-1],
        [LAST_MS],
        [LAST_MS + 1],
        [None],
        [2**62, 5, None],
    ]
    entries = [
        {"timestamp": time, "standardizedSql": f"SELECT {number}", "userName": "Ana"}
        for number, several in enumerate(times)
        for time in several
    ]
    with make_log(dict.fromkeys(DAYS, entries), tmp_path) as log:
        for user in (None, "Ana"):
            records = day_json(log.days[day], user=user)["queries"]
            assert log.run("day.queries", day, day, user=user) == records
    shown = {
        record["statement"]: (record["firstRequestTime"], record["lastRequestTime"]) for record in records
    }
    assert [shown[f"SELECT {number}"] for number in range(len(times))] == [
        (None, None),
        (None, None),
        ("1970-01-01T00:00:00.000Z",) * 2,
        (None, None),
        ("9999-12-31T23:59:59.999Z",) * 2,
        (None, None),
        (None, None),
        ("1970-01-01T00:00:00.005Z",) * 2,
    ]


def test_the_queries_of_a_year(log: Log) -> None:
    first, last = date(2026, 1, 1), date(2026, 12, 31)
    with opened(log.year) as rollups:
        document = to_builtins(
            year_document(rollups, tenant=TENANT, year=2026, activity=daily_activity(rollups))
        )
        rules = to_builtins(rules_document(rollups))
        opportunities = to_builtins(
            opportunities_document(rollups, text_file=lambda day: log.days[day][STATEMENTS])
        )
    for name in ("tenantSummaryReportID", "tenantId", "reportyears"):
        document.pop(name)

    assert log.run("year.last365daysQueryActivity", FIRST_ACTIVITY, last) == document.pop(
        "last365daysQueryActivity"
    )
    assert log.run("year", first, last) == [document]
    assert log.run("rules.rules", first, last) == rules.pop("rules")
    assert log.run("rules", first, last) == [rules]
    for name, entries in opportunities.items():
        assert entries, f"no entry shows {name}"
        assert log.run(f"opportunities.{name}", first, last) == entries


def test_the_query_of_all_users(log: Log) -> None:
    with opened(log.year) as rollups:
        document = to_builtins(
            users_document(rollups, tenant=TENANT, generated_at=datetime(2026, 5, 3, tzinfo=UTC))
        )

    assert log.run("users", DAYS[0], DAYS[-1]) == [{"totalUsers": document["totalUsers"]}]
    assert log.run("users.users", DAYS[0], DAYS[-1]) == document["users"]
    for user in document["users"]:
        assert log.run("users.users", DAYS[0], DAYS[-1], user=user["userId"]) == [user]


def test_the_documentation_has_every_query() -> None:
    pages = [(DOCUMENTATION / name).read_text() for name in ("analytics.md", "savings.md")]
    assert [name for page in pages for name in re.findall(r"```sql\n-- (\S+)", page)] == list(QUERIES)
    assert pages == list(map(render, pages)), "run 'make contract'"


def test_a_users_name_is_a_literal() -> None:
    sql = QUERIES["rules"].over(DAYS[0], DAYS[0], user="$first' OR WHERE day\0x")
    assert sql.endswith(
        "FROM proxy_logs WHERE userName = ('$first'' OR WHERE day' || chr(0) || 'x') AND "
        "day BETWEEN '2026-03-01' AND '2026-03-01'"
    )
