"""Data of an earlier version of the service can be read, and is rebuilt."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.core.cache import cache

from analytics.models import DayRollup, Kind, MergedRollup, SummaryDocument
from analytics.numbers.merged import is_month
from analytics.numbers.periods import find_stale_periods
from analytics.numbers.state import GONE_SECONDS, mark_outdated_days
from analytics.numbers.tables import ACTIVITY, HOURS, NO_VERSION, ROLLUP_VERSION
from analytics.numbers.users import find_user_source, user_document
from analytics.published.verify import DocumentKey, MadeByAnotherRelease, verify_document
from analytics.tasks import refresh_day, refresh_outdated_days, refresh_periods
from logs.audit import Reader
from logs.layout import LAYOUT_VERSION
from logs.models import PendingBuild
from logs.pending import mark_days
from logs.sources import local_paths
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.objectstore import default_store
from tests.analytics import oracle
from tests.analytics.builds import DAY, LATER, TENANT, document, entry, put, rebuild_all, rows_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_release_was_seen() -> None:
    cache.clear()


def user_json(period: str) -> Any:
    source = find_user_source(tenant=TENANT, user="Ana", period=period)
    assert source is not None
    body = user_document(default_store(), source)
    assert isinstance(body, bytes)
    return json.loads(body)


def test_rollups_of_an_earlier_version_are_rebuilt_although_no_object_changed() -> None:
    for day in (DAY, LATER):
        put("00/a.json", entry(day), day=day)
    rebuild_all()
    # Rollups of the previous version, whose files this version cannot read.
    files = {"groups": f"{TENANT}/rollups/day={DAY}/b.groups.parquet"}
    DayRollup.objects.filter(day=DAY).update(version=ROLLUP_VERSION - 1, files=files)
    rows = rows_of(DAY, LATER)
    mine = oracle.for_user(rows, "Ana")
    assert user_json("2025-12-31") == oracle.day_document(mine[:1])
    assert user_json("2025-12") == oracle.month_document(mine[:1], 12)
    assert user_json("2026") == oracle.year_document(mine, tenant=str(TENANT), year=2026)

    # The activity of the year after includes the day.
    assert find_stale_periods(tenant=TENANT) == []
    assert rebuild_all() == ([DAY], ["2025-12", "2025", "2026", ""])
    assert user_json("2025-12-31") == oracle.day_document(mine[:1])
    assert document(Kind.YEAR, "2026") == oracle.year_document(rows, tenant=str(TENANT), year=2026)


@pytest.mark.parametrize("period", ["2025-12", "2025"])
def test_a_month_or_year_of_a_user_waits_for_a_column_that_it_reads(period: str) -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    assert user_json(period)["totalHits"] == 1
    cache.clear()
    table = HOURS if is_month(period) else ACTIVITY
    file = MergedRollup.objects.get(period=period).files[table]
    (path,) = local_paths(default_store(), [file])
    pq.write_table(pq.read_table(path).drop_columns(["hit_bytes"]), path)
    with pytest.raises(ApiError, match="The service was upgraded") as raised:
        user_json(period)
    assert raised.value.headers == {"Retry-After": "60"}
    assert user_json("2025-12-31")["totalHits"] == 1


def read_marked() -> set[date | None]:
    """Return what is pending, and forget it."""
    marked = set(PendingBuild.objects.values_list("day", flat=True))
    PendingBuild.objects.all().delete()
    return marked


def test_a_release_builds_again_what_a_later_one_made_when_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rollback. While both run, as in a rolling update, they would replace each other's days for ever."""
    for day in (DAY, LATER):
        put("00/a.json", entry(day), day=day)
    rebuild_all()
    clock = [1_000_000.0]
    monkeypatch.setattr("analytics.numbers.state.time.time", lambda: clock[0])

    def run_release(version: int) -> set[date | None]:
        """Return what the job of this version marks."""
        monkeypatch.setattr("analytics.numbers.state.ROLLUP_VERSION", version)
        refresh_outdated_days()
        return read_marked()

    # The first run cannot know which release ran before.
    assert run_release(ROLLUP_VERSION) == {None}
    assert run_release(ROLLUP_VERSION) == set()
    # A later release takes over at once; the earlier one waits until it is gone.
    assert run_release(ROLLUP_VERSION + 1) == {DAY, LATER, None}
    DayRollup.objects.filter(day=DAY).update(version=ROLLUP_VERSION + 1)
    clock[0] += GONE_SECONDS - 1
    assert run_release(ROLLUP_VERSION) == set()
    clock[0] += 1
    assert run_release(ROLLUP_VERSION) == {DAY, None}
    assert run_release(ROLLUP_VERSION) == {DAY}
    # And forward again.
    assert run_release(ROLLUP_VERSION + 1) == {LATER, None}


def test_verify_says_what_to_do_about_documents_of_another_release() -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    refresh_outdated_days()
    read_marked()
    DayRollup.objects.update(version=ROLLUP_VERSION + 1)
    for kind, period in ((Kind.DAY, "2025-12-31"), (Kind.MONTH, "2025-12"), (Kind.USERS, "")):
        with pytest.raises(MadeByAnotherRelease, match=f"`manage.py rebuild --tenant {TENANT}` makes it now"):
            verify_document(
                default_store(), key=DocumentKey(TENANT, kind, period), reader=Reader(email="a", address="")
            )
    assert rebuild_all() == ([DAY], ["2025-12", "2025", ""])
    # Of the same days, but merged in another way.
    SummaryDocument.objects.filter(kind=Kind.MONTH).update(source="other")
    with pytest.raises(MadeByAnotherRelease):
        verify_document(
            default_store(),
            key=DocumentKey(TENANT, Kind.MONTH, "2025-12"),
            reader=Reader(email="a", address=""),
        )


def test_beat_has_days_of_an_earlier_version_built_again() -> None:
    days = [DAY, LATER, date(2026, 3, 3)]
    for day in days:
        put("00/a.json", entry(day), day=day)
    rebuild_all()
    assert mark_outdated_days(limit=10) == 0
    DayRollup.objects.filter(day__in=days[:2]).update(version=ROLLUP_VERSION - 1)
    # Lost rollups are pending by themselves, after a while.
    DayRollup.objects.filter(day=days[2]).update(version=NO_VERSION)

    assert mark_outdated_days(limit=1) == 1
    (first,) = PendingBuild.objects.values_list("day", "mark")
    refresh_outdated_days()
    assert set(PendingBuild.objects.values_list("day", flat=True)) == {DAY, LATER, None}
    # What is pending is not marked again, which would build it twice.
    assert first in PendingBuild.objects.values_list("day", "mark")

    for day in days[:2]:
        refresh_day(str(TENANT), day.isoformat())
    refresh_periods(str(TENANT))
    refresh_outdated_days()
    assert not PendingBuild.objects.exists()
    assert DayRollup.objects.filter(version=ROLLUP_VERSION).count() == 2


def test_an_upgrade_adds_no_days_while_many_are_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    DayRollup.objects.update(version=ROLLUP_VERSION - 1)
    monkeypatch.setattr("analytics.tasks.MAX_OUTDATED", 1)
    mark_days(tenant=TENANT, days=[LATER])
    refresh_outdated_days()
    assert [pending.day for pending in PendingBuild.objects.exclude(day=None)] == [LATER]


def test_another_version_rebuilds_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    for module in ("days", "merged", "store"):
        monkeypatch.setattr(f"analytics.numbers.{module}.ROLLUP_VERSION", ROLLUP_VERSION + 1)
    assert rebuild_all() == ([DAY], ["2025-12", "2025", ""])
    assert rebuild_all() == ([], [])


def test_another_layout_rebuilds_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    monkeypatch.setattr("logs.layout.LAYOUT_VERSION", LAYOUT_VERSION + 1)
    assert rebuild_all() == ([DAY], ["2025-12", "2025", ""])
    assert rebuild_all() == ([], [])
