"""Stale days and periods are found and rebuilt."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.models import Build, DayRollup, Kind, SummaryDocument
from analytics.numbers.days import find_stale_days
from logs.models import Partition, QuarantinedEntry, SupersededFile
from logs.sources import log_source
from tenantadmin.lib.objectstore import default_store
from tests.analytics import oracle
from tests.analytics.builds import DAY, LATER, NEXT, TENANT, document, entry, put, rebuild_all, rows_of
from tests.objects import read_object, save_object

if TYPE_CHECKING:
    from django.test.utils import CaptureQueriesContext

pytestmark = pytest.mark.django_db


def test_everything_is_built_once_and_then_current() -> None:
    for day in (DAY, NEXT, LATER):
        put("00/a.json", entry(day), entry(day, cacheStatus="HIT", userName="Bo"), day=day)

    assert rebuild_all() == ([DAY, NEXT, LATER], ["2025-12", "2026-01", "2026-03", "2025", "2026", ""])
    assert rebuild_all() == ([], [])

    rows = rows_of(DAY, NEXT, LATER)
    assert document(Kind.DAY, "2025-12-31") == oracle.day_document(rows[:2])
    assert document(Kind.MONTH, "2026-01") == oracle.month_document(rows[2:4], 1)
    assert document(Kind.YEAR, "2026") == oracle.year_document(rows, tenant=str(TENANT), year=2026)
    assert document(Kind.RULES, "2026") == oracle.rules_document(rows[2:])
    assert document(Kind.USERS, "")["totalUsers"] == 2
    assert set(Build.objects.values_list("state", flat=True)) == {"done"}


def test_the_year_999_is_found_and_built() -> None:
    for day in (date.min, date(999, 12, 31)):
        put("00/a.json", entry(day), day=day)
    assert read_object(default_store(), f"{TENANT}/logs/0999/12/31/00/a.json")

    assert rebuild_all()[1] == ["0001-01", "0999-12", "0001", "0999", ""]

    assert find_stale_days(default_store(), tenant=TENANT) == []
    assert document(Kind.DAY, "0001-01-01")["uniqueUsers"] == 1
    found = document(Kind.YEAR, "0999")
    assert found["reportyears"] == ["0999"]
    assert [day["date"] for day in found["last365daysQueryActivity"]] == ["0999/12/31"]
    assert [day["date"] for day in document(Kind.YEAR, "0001")["last365daysQueryActivity"]] == ["0001/01/01"]


def test_a_late_object_makes_its_day_and_its_periods_stale() -> None:
    put("00/a.json", entry(DAY))
    put("00/a.json", entry(LATER), day=LATER)
    rebuild_all()
    before = Partition.objects.get(day=DAY)

    put("23/late.json", entry(DAY, userName="Chen"))

    # The 365 days of activity of 2026 include days of 2025.
    assert rebuild_all() == ([DAY], ["2025-12", "2025", "2026", ""])
    assert document(Kind.DAY, "2025-12-31")["uniqueUsers"] == 2
    after = Partition.objects.get(day=DAY)
    assert after.file != before.file
    assert before.file in SupersededFile.objects.values_list("key", flat=True)
    assert read_object(default_store(), before.file)  # readers that hold the old build are not disturbed


def test_a_changed_object_makes_its_day_stale() -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    put("00/a.json", entry(DAY, userName="Bob"))

    assert find_stale_days(default_store(), tenant=TENANT) == [DAY]
    rebuild_all()
    assert document(Kind.USERS, "")["users"][0]["userId"] == "Bob"


def test_finding_stale_days_takes_two_database_queries(
    django_assert_num_queries: Callable[[int], CaptureQueriesContext],
) -> None:
    for day in (DAY, NEXT, LATER):
        put("00/a.json", entry(day), day=day)
    rebuild_all()
    put("01/b.json", entry(NEXT), day=NEXT)
    with django_assert_num_queries(2):
        assert find_stale_days(default_store(), tenant=TENANT) == [NEXT]
    with django_assert_num_queries(2):
        assert find_stale_days(default_store(), tenant=TENANT, first=DAY, last=DAY) == []


def test_a_day_without_objects_is_removed_with_its_periods() -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    default_store().delete(f"{TENANT}/logs/2025/12/31/00/a.json")

    assert rebuild_all() == ([DAY], ["2025-12", "2025", ""])
    assert not Partition.objects.exists()
    assert not DayRollup.objects.exists()
    assert not SummaryDocument.objects.exists()
    assert log_source(default_store(), tenant=TENANT).days == ()


def test_a_day_of_invalid_entries_has_a_quarantine_list_and_no_rows() -> None:
    put("00/a.json", 5, entry(DAY, statusCode="200"))
    save_object(default_store(), f"{TENANT}/logs/2025/12/31/01/b.json", b'{"cut')

    assert rebuild_all() == ([DAY], [])
    assert list(QuarantinedEntry.objects.values_list("key", "position", "reason")) == [
        (f"{TENANT}/logs/2025/12/31/00/a.json", 0, "the entry is an integer, not an object"),
        (f"{TENANT}/logs/2025/12/31/00/a.json", 1, "statusCode is text, not an integer"),
        (f"{TENANT}/logs/2025/12/31/01/b.json", None, "line 1 is not JSON: Input data was truncated"),
    ]
    partition = Partition.objects.get()
    assert (partition.rows, partition.file, partition.quarantined) == (0, "", 3)

    put("02/good.json", entry(DAY))
    assert rebuild_all()[0] == [DAY]
    assert Partition.objects.get().rows == 1


def test_a_query_reads_the_current_file_of_each_day(object_store: Path) -> None:
    put("00/a.json", entry(DAY))
    put("00/a.json", entry(NEXT), day=NEXT)
    rebuild_all()

    source = log_source(default_store(), tenant=TENANT)
    files = dict(Partition.objects.values_list("day", "file"))
    assert [(day.day, day.files) for day in source.days] == [
        ("2025-12-31", (str(object_store / files[DAY]),)),
        ("2026-01-01", (str(object_store / files[NEXT]),)),
    ]
