"""Every field of every document against the oracle, over random files."""

from __future__ import annotations

import tempfile
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
from hypothesis import HealthCheck, given, settings

from analytics.documents.day import day_document
from analytics.documents.month import month_document
from analytics.documents.opportunities import opportunities_document
from analytics.documents.rules import rules_document
from analytics.documents.users import users_document
from analytics.documents.year import daily_activity, year_document
from logs.columns import COLUMNS
from tests.analytics import oracle, raw
from tests.analytics.pipeline import TENANT, opened, roll_day, store_files

Files = dict[date, dict[str, bytes]]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(days=raw.days())
def test_every_document_equals_the_oracle(days: Files) -> None:
    with tempfile.TemporaryDirectory() as name:
        check_documents(days, Path(name))


def check_documents(days: Files, directory: Path) -> None:
    store = store_files(directory / "store", days)
    rows: list[oracle.Row] = []
    rolled = []
    for day, files in sorted(days.items()):
        compacted, rolled_day = roll_day(store, day, directory=directory / "built")
        expected = oracle.read_day(files, day)
        assert compacted.rows == len(expected)
        if compacted.file is not None:
            assert stored_rows(compacted.file) == sorted_rows(expected)
        if rolled_day is None:
            continue
        rolled.append(rolled_day)
        rows += expected
    if not rolled:
        return
    users: list[str | None] = [None, *sorted(oracle.distinct(rows, "userName"))]
    for user in users:
        mine = rows if user is None else oracle.for_user(rows, user)
        held = {row["day"] for row in mine}
        own = [day for day in rolled if day.day.isoformat() in held]
        for one in own:
            of_day = [row for row in mine if row["day"] == one.day.isoformat()]
            with opened([one], user=user) as rollups:
                assert day_document(rollups) == oracle.day_document(of_day)
        for year, month in sorted({(day.day.year, day.day.month) for day in own}):
            with opened(
                [day for day in own if (day.day.year, day.day.month) == (year, month)], user=user
            ) as rollups:
                of_month = [row for row in mine if row["day"].startswith(f"{year}-{month:02}-")]
                assert month_document(rollups, month=month) == oracle.month_document(of_month, month)
        with opened(own, user=user) as rollups:
            activity = daily_activity(rollups)
        for year in sorted({day.day.year for day in own}):
            of_year = [row for row in mine if row["day"].startswith(f"{year}-")]
            up_to = [entry for entry in activity if entry["date"] < f"{year + 1}"]
            with opened([day for day in own if day.day.year == year], user=user) as rollups:
                assert year_document(
                    rollups, tenant=TENANT, year=year, activity=up_to
                ) == oracle.year_document(mine, tenant=str(TENANT), year=year)
                if user is None:
                    assert rules_document(rollups) == oracle.rules_document(of_year)
                    assert without_action(opportunities_document(rollups)) == oracle.opportunities_document(
                        of_year
                    )
    with opened(rolled) as rollups:
        document = users_document(rollups, tenant=TENANT, generated_at=datetime(2026, 3, 2, tzinfo=UTC))
    assert document.pop("generatedAt") == "2026-03-02T00:00:00.000Z"
    assert document == oracle.users_document(rows, tenant=str(TENANT))


def without_action(document: dict[str, Any]) -> dict[str, Any]:
    for entries in document.values():
        for entry in entries:
            assert entry.pop("suggestedAction").endswith(".")
    return document


def stored_rows(path: Path) -> list[tuple[Any, ...]]:
    names = ", ".join(f'"{column.name}"' for column in COLUMNS)
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT {names}, _hour FROM read_parquet(?)", [str(path)]).fetchall()


def sorted_rows(rows: list[oracle.Row]) -> list[tuple[Any, ...]]:
    """In the file's order: the latest last, and of equal ones the first by object key last."""
    ordered = rows[::-1]
    ordered.sort(key=lambda row: (row["timestamp"] or 0, (row["logId"] or "").encode()))
    return [(*tuple(row[column.name] for column in COLUMNS), row["hour"]) for row in ordered]
