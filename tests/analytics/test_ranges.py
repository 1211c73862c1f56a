"""Rules of a range of days agree with the oracle, for whole months and single days."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import to_builtins

from analytics.models import DayRollup
from analytics.numbers.store import shared_engine
from analytics.reports.activity import find_range, rules_of
from tenantadmin.lib.objectstore import default_store
from tests.analytics import oracle
from tests.analytics.builds import TENANT, put, random_entries, rebuild_all, rows_of
from tests.shared import shared_by_tests

if TYPE_CHECKING:
    from pytest_django.plugin import DjangoDbBlocker

pytestmark = pytest.mark.django_db
DAYS = [date(2026, 1, 31), date(2026, 2, 1), date(2026, 2, 28), date(2026, 3, 1), date(2026, 3, 2)]


@pytest.fixture(scope="module", autouse=True)
def object_store(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A log, built once for all tests."""
    root = tmp_path_factory.mktemp("objects")
    with shared_by_tests(django_db_blocker, root):
        chance = random.Random(5)  # noqa: S311  # reproducible, not secret
        for day in DAYS:
            put("00/a.json", *random_entries(chance, day), day=day)
        rebuild_all()
        yield root


def read(first: date, last: date) -> Any:
    found = find_range(tenant=TENANT, first=first, last=last)
    store = default_store()
    with shared_engine() as engine:
        return to_builtins(rules_of(engine.connection, store, found))


@pytest.mark.parametrize(
    ("first", "last"),
    [(DAYS[0], DAYS[-1]), (DAYS[1], DAYS[3]), (DAYS[3], DAYS[3]), (date(2026, 2, 1), date(2026, 2, 28))],
)
def test_they_match_the_oracle(first: date, last: date) -> None:
    rows = rows_of(*(day for day in DAYS if first <= day <= last))
    assert read(first, last) == oracle.rules_document(rows)["rules"]


def test_a_whole_month_is_one_part() -> None:
    found = find_range(tenant=TENANT, first=DAYS[0], last=DAYS[-1])
    assert len(found.parts) == 4
    assert sorted(found.days) == DAYS


def test_days_of_another_version_are_left_out() -> None:
    DayRollup.objects.filter(day=DAYS[3]).update(version=1)
    assert read(DAYS[3], DAYS[4]) == oracle.rules_document(rows_of(DAYS[4]))["rules"]


def test_without_a_log_there_is_nothing() -> None:
    assert read(date(2025, 1, 1), date(2025, 1, 31)) == []
