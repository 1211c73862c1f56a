"""Every field of every document equals the oracle's, for random files."""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
from datetime import UTC, date, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import to_builtins

from analytics.numbers import tables as day_rows
from analytics.numbers.documents import month_document
from analytics.numbers.rollup import write_rollups
from analytics.numbers.tables import ROLLUP_VERSION, STATEMENTS, TABLES
from analytics.numbers.yearly import (
    daily_activity,
    first_activity_day,
    opportunities_document,
    rules_document,
    users_document,
    year_document,
)
from logs.columns import COLUMNS
from logs.layout import day_start_ms
from tests.analytics import oracle, raw
from tests.analytics.builds import (
    DAYS,
    TENANT,
    Part,
    day_json,
    engine,
    merge,
    merge_year,
    opened,
    random_entries,
    roll_day,
    store_files,
)

Files = dict[date, dict[str, bytes]]


@pytest.mark.slow
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(days=raw.days())
def test_every_document_equals_the_oracle(days: Files) -> None:
    with tempfile.TemporaryDirectory() as name:
        check_documents(days, Path(name))


@pytest.mark.slow
def test_documents_of_many_entries_equal_the_oracle(tmp_path: Path) -> None:
    # Repeated statements in each list of opportunities, which the small files above seldom have.
    chance = random.Random(1)  # noqa: S311  # reproducible, not secret
    # The activity of 2026 begins 364 days before its last day.
    before = date(2025, 5, 2), date(2025, 5, 3)
    days = {day: {"00/a.json": json.dumps(random_entries(chance, day)).encode()} for day in (*before, *DAYS)}
    check_documents(days, tmp_path)
    rows = [row for day, files in days.items() for row in oracle.read_day(files, day)]
    assert all(oracle.opportunities_document(rows).values())


def check_documents(days: Files, directory: Path) -> None:
    store = store_files(directory / "store", days)
    rows: list[oracle.Row] = []
    rolled: dict[date, Part] = {}
    for day, files in sorted(days.items()):
        compacted, part = roll_day(store, day, directory=directory / "built")
        expected = oracle.read_day(files, day)
        assert compacted.rows == len(expected)
        if compacted.file is not None:
            assert stored_rows(compacted.file) == sorted_rows(expected)
        if part is None:
            continue
        rolled[day] = part
        rows += expected
    if not rolled:
        return
    years: dict[int, Part] = {}
    for user in (None, *sorted(oracle.distinct(rows, "userName")), "unknown"):
        mine = rows if user is None else oracle.for_user(rows, user)
        for day, part in rolled.items():
            of_day = [row for row in mine if row["day"] == day.isoformat()]
            assert day_json(part, user=user) == (oracle.day_document(of_day) if of_day else None)
    for year in sorted({day.year for day in rolled}):
        own = {day: part for day, part in rolled.items() if day.year == year}
        years[year] = merge_year(own, directory=directory / f"{year}")
        for month in sorted({day.month for day in own}):
            # January 2026 is merged from two days.
            merged = merge(
                [part for day, part in own.items() if day.month == month],
                directory=directory / f"{year}-{month:02}",
            )
            check_month(merged, rows, year=year, month=month)
    for year in years:
        check_year(years, rows, rolled, year=year)
    with opened(*years.values()) as rollups:
        document = to_builtins(
            users_document(rollups, tenant=TENANT, generated_at=datetime(2026, 3, 2, tzinfo=UTC))
        )
    assert document.pop("generatedAt") == "2026-03-02T00:00:00.000Z"
    assert document == oracle.users_document(rows, tenant=str(TENANT))


def check_month(merged: Part, rows: list[oracle.Row], *, year: int, month: int) -> None:
    of_month = [row for row in rows if row["day"].startswith(f"{year}-{month:02}-")]
    for user in (None, *sorted(oracle.distinct(rows, "userName")), "unknown"):
        mine = of_month if user is None else oracle.for_user(of_month, user)
        with opened(merged, user=user) as rollups:
            expected = oracle.month_document(mine, month) if mine else None
            assert to_builtins(month_document(rollups, month=month)) == expected


def check_year(
    years: dict[int, Part], rows: list[oracle.Row], rolled: dict[date, Part], *, year: int
) -> None:
    of_year = [row for row in rows if row["day"].startswith(f"{year}-")]
    for user in (None, *sorted(oracle.distinct(of_year, "userName"))):
        mine = rows if user is None else oracle.for_user(rows, user)
        activity = []
        for shown in (year - 1, year):
            if shown in years:
                with opened(years[shown], user=user) as rollups:
                    activity += daily_activity(rollups)
        with opened(years[year], user=user) as rollups:
            document = year_document(rollups, tenant=TENANT, year=year, activity=activity)
            assert to_builtins(document) == oracle.year_document(mine, tenant=str(TENANT), year=year)
    with opened(years[year]) as rollups:
        assert to_builtins(rules_document(rollups)) == oracle.rules_document(of_year)
        opportunities = opportunities_document(rollups, text_file=lambda day: rolled[day][STATEMENTS])
        assert without_action(to_builtins(opportunities)) == oracle.opportunities_document(of_year)


def test_the_activity_covers_365_days_and_begins_at_the_earliest_in_year_1() -> None:
    assert first_activity_day(date(2026, 3, 1)) == date(2025, 3, 2)
    assert first_activity_day(date(1, 12, 31)) == date(1, 1, 1)
    assert first_activity_day(date(1, 1, 1)) == date(1, 1, 1)


def test_suggested_actions_name_the_warehouse_time_that_they_save(tmp_path: Path) -> None:
    day = date(2026, 3, 1)
    # Hits take no warehouse time. 2 hits of 5 executions are not a low hit rate, 4 of 21 are.
    asked = [
        ("often", "r1", ["MISS"] * 3 + ["HIT"] * 2, 300),
        ("rarely", None, ["MISS"] * 17 + ["HIT"] * 4, 10),
        ("seldom", "r3", ["MISS"] * 17 + ["HIT"] * 4, 20),
        ("never", "r2", ["BYPASS", "PASSTHROUGH", "BYPASS"], 50),
        ("unruled", None, ["PASSTHROUGH"] * 2, 7),
    ]
    entries = [
        {
            "timestamp": day_start_ms(day),
            "standardizedSql": sql,
            "matchedRule": rule,
            "matchedRuleName": {"r1": "Sales", "r2": "Live"}.get(rule or ""),
            "cacheStatus": status,
            "warehouseExecutionTimeMs": None if status == "HIT" else time,
        }
        for sql, rule, statuses, time in asked
        for status in statuses
    ]
    store = store_files(tmp_path / "store", {day: {"00/a.json": json.dumps(entries).encode()}})
    _, part = roll_day(store, day, directory=tmp_path / "built")
    assert part is not None
    with opened(merge_year({day: part}, directory=tmp_path / "year")) as rollups:
        document = to_builtins(opportunities_document(rollups, text_file=lambda _: part[STATEMENTS]))
    actions = {
        name: {entry["statement"]: entry["suggestedAction"] for entry in own}
        for name, own in document.items()
    }
    assert actions == {
        "repeatMisses": {
            "often": "Raise the TTL of rule “Sales”, or invalidate it less often: it had 3 misses and 2 "
            "hits, and each further hit saves about 300 ms of warehouse time.",
            "rarely": "Raise the TTL of the rule that caches it, or invalidate it less often: it had 17 "
            "misses and 4 hits, and each further hit saves about 10 ms of warehouse time.",
            "seldom": "Raise the TTL of rule r3, or invalidate it less often: it had 17 misses and 4 hits, "
            "and each further hit saves about 20 ms of warehouse time.",
        },
        "highCostUncached": {
            "never": "Let rule “Live” cache this statement: it ran 3 times on the warehouse without caching. "
            "If only the first execution did, that would save up to 100 ms.",
            "unruled": "Add a rule that caches this statement: it ran 2 times on the warehouse without "
            "caching. If only the first execution did, that would save up to 7 ms.",
        },
        "lowHitRate": {
            "rarely": "Widen the key or raise the TTL of the rule that caches it: only 4 of 21 executions "
            "were hits, and each further hit saves about 10 ms of warehouse time.",
            "seldom": "Widen the key or raise the TTL of rule r3: only 4 of 21 executions were hits, and "
            "each further hit saves about 20 ms of warehouse time.",
        },
    }


def test_requests_of_a_rule_have_any_status(tmp_path: Path) -> None:
    day = date(2026, 3, 1)
    asked = {
        "bypass": ["BYPASS", "PASSTHROUGH", "HOLD"],
        "cache": ["HIT", "MISS", "INVALIDATION_ERROR", "ERROR", "BYPASS"],
        "deny": ["BLOCKED"] * 3,
    }
    entries = [
        {"timestamp": day_start_ms(day), "standardizedSql": sql, "matchedRule": rule, "cacheStatus": status}
        for rule, statuses in asked.items()
        for status in statuses
        for sql in ("SELECT 1", None)
    ]
    store = store_files(tmp_path / "store", {day: {"00/a.json": json.dumps(entries).encode()}})
    _, part = roll_day(store, day, directory=tmp_path / "built")
    assert part is not None
    with opened(merge_year({day: part}, directory=tmp_path / "year")) as rollups:
        rules = rules_document(rollups).rules
    counts = attrgetter("requests", "total_executions", "cache_misses", "not_cached", "queries_matched")
    assert {rule.rule_id: counts(rule) for rule in rules} == {
        "bypass": (6, 4, 4, 4, 1),
        "cache": (10, 6, 4, 2, 1),
        "deny": (6, 0, 0, 0, 1),
    }


def test_statements_of_equal_cost_are_listed_by_hash(tmp_path: Path) -> None:
    day = date(2026, 3, 1)
    entries = [
        {
            "timestamp": day_start_ms(day),
            "standardizedSql": f"SELECT {number}",
            "cacheStatus": status,
            "warehouseExecutionTimeMs": 10,
        }
        for number in range(52)
        for status in ["BYPASS"] * 17 + ["MISS"] * 3
    ]
    store = store_files(tmp_path / "store", {day: {"00/a.json": json.dumps(entries).encode()}})
    _, part = roll_day(store, day, directory=tmp_path / "built")
    assert part is not None
    with opened(merge_year({day: part}, directory=tmp_path / "year")) as rollups:
        document = to_builtins(opportunities_document(rollups, text_file=lambda _: part[STATEMENTS]))
    hashes = sorted(oracle.md5(f"SELECT {number}") for number in range(52))
    listed = {name: [entry["queryHash"] for entry in own] for name, own in document.items()}
    assert listed == dict.fromkeys(("repeatMisses", "highCostUncached", "lowHitRate"), hashes[:50])


def test_a_day_of_many_statements_lists_and_counts_each_once(tmp_path: Path) -> None:
    day = date(2026, 3, 1)
    # More than a row group of the rollups, with the last statements in hours of their own.
    entries = [
        {
            "timestamp": day_start_ms(day) + (3_600_000 * (number // 4_000)),
            "standardizedSql": f"SELECT {number}",
            "userName": "Ana",
        }
        for number in range(8_200)
    ]
    files = {"00/a.json": json.dumps(entries).encode()}
    _, part = roll_day(store_files(tmp_path / "store", {day: files}), day, directory=tmp_path / "built")
    assert part is not None
    expected = oracle.day_document(oracle.read_day(files, day))
    assert [hour["queries"] for hour in expected["hourlyActivity"][:4]] == [4_000, 4_000, 200, 0]
    for user in (None, "Ana"):
        assert day_json(part, user=user) == expected


def without_action(document: dict[str, Any]) -> dict[str, Any]:
    for entries in document.values():
        for entry in entries:
            assert entry.pop("suggestedAction").endswith(".")
    return document


def stored_rows(path: Path) -> list[tuple[Any, ...]]:
    names = ", ".join(f'"{column.name}"' for column in COLUMNS)
    with engine().cursor() as connection:
        return connection.execute(f"SELECT {names}, _hour FROM read_parquet(?)", [str(path)]).fetchall()


def sorted_rows(rows: list[oracle.Row]) -> list[tuple[Any, ...]]:
    """Sort rows as in the file: the latest entry last, and of equal ones the first by object key last."""
    ordered = rows[::-1]
    ordered.sort(key=lambda row: (row["timestamp"] or 0, (row["logId"] or "").encode()))
    return [(*tuple(row[column.name] for column in COLUMNS), row["hour"]) for row in ordered]


#: The versions, and the digest of the columns and documents that they make from the random log.
EXPECTED_DAYS = (7, "8604e7727f1e1cb1")
EXPECTED_MONTHS_AND_YEARS = (7, "152f67202866c93a")


class Stored:
    """The rollups of the random log, and its documents."""

    def __init__(self, days: dict[Any, Part], *, month: Part, year: Part) -> None:
        self.days, self.merged = list(days.values()), [month, year]
        with opened(month) as rollups:
            of_month = month_document(rollups, month=DAYS[0].month)
        with opened(year) as rollups:
            self.day = day_json(days[DAYS[0]])
            self.documents = [
                self.day,
                of_month,
                year_document(rollups, tenant=TENANT, year=DAYS[0].year, activity=daily_activity(rollups)),
                rules_document(rollups),
                opportunities_document(rollups, text_file=lambda day: days[day][STATEMENTS]),
                users_document(rollups, tenant=TENANT, generated_at=datetime(2026, 5, 3, tzinfo=UTC)),
            ]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    directory = tmp_path_factory.mktemp("stored")
    chance = random.Random(1)  # noqa: S311  # reproducible, not secret
    bodies = {day: json.dumps(random_entries(chance, day)).encode() for day in DAYS}
    store = store_files(directory / "store", {day: {"00/a.json": body} for day, body in bodies.items()})
    days = {}
    for day in DAYS:
        _, part = roll_day(store, day, directory=directory / "built")
        assert part is not None
        days[day] = part
    of_month = [part for day, part in days.items() if day.month == DAYS[0].month]
    return Stored(
        days,
        month=merge(of_month, directory=directory / "month"),
        year=merge_year(days, directory=directory / "year"),
    )


def test_changed_days_need_a_new_rollup_version(stored: Stored) -> None:
    found = digest(columns(stored.days), stored.day)
    assert (ROLLUP_VERSION, found) == EXPECTED_DAYS, "raise ROLLUP_VERSION, then copy the new digest"


def test_changed_months_and_years_need_a_new_version(stored: Stored) -> None:
    found = digest(columns(stored.merged), *stored.documents)
    expected = EXPECTED_MONTHS_AND_YEARS
    assert (ROLLUP_VERSION, found) == expected, "raise ROLLUP_VERSION, then copy the new digest"


def columns(parts: list[Part]) -> list[dict[str, list[str]]]:
    return [{table: pq.read_schema(path).names for table, path in part.items()} for part in parts]


def digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(to_builtins(values)).encode()).hexdigest()[:16]


def test_rollups_are_equal_whether_a_day_is_read_in_parts_or_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = DAYS[0]
    body = json.dumps(random_entries(random.Random(1), day)).encode()  # noqa: S311  # reproducible, not secret
    store = store_files(tmp_path / "store", {day: {"00/a.json": body}})
    compacted, at_once = roll_day(store, day, directory=tmp_path / "built")
    assert compacted.file is not None
    assert at_once is not None

    # Four parts; the last has one row group.
    log = tmp_path / "parts.parquet"
    pq.write_table(pq.read_table(compacted.file), log, row_group_size=-(-compacted.rows // 7))
    monkeypatch.setattr(day_rows, "GROUPS", 2)
    for name, most in (("repeating", day_rows.STATEMENT_BYTES), ("long", 0)):
        # Repeated statements and long statements are read in different ways.
        monkeypatch.setattr(day_rows, "STATEMENT_BYTES", most)
        (tmp_path / name).mkdir()
        in_parts = write_rollups(log, day=day, directory=tmp_path / name)

        for table in TABLES:
            assert pq.read_table(in_parts[table]).equals(pq.read_table(at_once[table])), table
        for user in (None, "Ana"):
            assert day_json({table: str(path) for table, path in in_parts.items()}, user=user) == day_json(
                at_once, user=user
            )
