"""Any change of stored documents needs a new version."""

from __future__ import annotations

import hashlib
import json
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from msgspec import to_builtins

from analytics.numbers.documents import month_document
from analytics.numbers.merged import MERGE_VERSION
from analytics.numbers.tables import FIRST_MERGED_VERSION, ROLLUP_VERSION, STATEMENTS
from analytics.numbers.yearly import (
    daily_activity,
    opportunities_document,
    rules_document,
    users_document,
    year_document,
)
from tests.analytics.pipeline import TENANT, day_json, merge, merge_year, opened, roll_day, store_files
from tests.analytics.random_log import DAYS, random_entries

if TYPE_CHECKING:
    from tests.analytics.pipeline import Part

#: The versions, and the digest of the columns and documents that they make from the random log.
EXPECTED_DAYS = (5, "8604e7727f1e1cb1")
EXPECTED_MERGED = (3, "8a45e25e8fe63c9f")
EXPECTED_MONTHS_AND_YEARS = (5, 3, "152f67202866c93a")


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


def test_new_columns_of_months_and_years_need_a_new_first_merged_version(stored: Stored) -> None:
    found = digest(columns(stored.merged))
    assert (FIRST_MERGED_VERSION, found) == EXPECTED_MERGED, (
        "if documents of one user read the new column, set FIRST_MERGED_VERSION to the new ROLLUP_VERSION; "
        "then copy the new digest"
    )


def test_changed_months_and_years_need_a_new_version(stored: Stored) -> None:
    found = digest(columns(stored.merged), *stored.documents)
    assert (ROLLUP_VERSION, MERGE_VERSION, found) == EXPECTED_MONTHS_AND_YEARS, (
        "raise MERGE_VERSION, unless you raised ROLLUP_VERSION, then copy the new digest"
    )


def columns(parts: list[Part]) -> list[dict[str, list[str]]]:
    return [{table: pq.read_schema(path).names for table, path in part.items()} for part in parts]


def digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(to_builtins(values)).encode()).hexdigest()[:16]
