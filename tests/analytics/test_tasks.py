"""The jobs, run by a Celery application that executes them at once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import cache
from django.db import InterfaceError, OperationalError, connection

from analytics import tasks
from analytics.models import Build, Kind
from analytics.summaries.days import rebuild_day
from logs.locks import Busy, build_lock
from logs.models import Partition, SupersededFile
from logs.partitions import GRACE
from tenantadmin.celery import app
from tenantadmin.core.timestamps import now
from tenantadmin.objectstore import ObjectNotFound, StoreError, default_store
from tests.analytics.builds import document, entry, put
from tests.analytics.pipeline import TENANT
from tests.objects import read_object, save_object

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.django_db

DAY = date(2026, 1, 1)


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    cache.clear()
    app.conf.task_always_eager = True
    app.conf.task_eager_propagates = True
    yield
    app.conf.task_always_eager = False
    app.conf.task_eager_propagates = False


def test_a_look_at_all_days_builds_them_and_what_shows_them() -> None:
    for day in (date(2025, 12, 31), date(2026, 1, 1)):
        put("00/a.json", entry(day), day=day)

    tasks.refresh_tenant.delay(str(TENANT), None)

    assert document(Kind.YEAR, "2026")["totalHits"] == 1
    assert len(document(Kind.YEAR, "2026")["last365daysQueryActivity"]) == 2
    assert document(Kind.USERS, "")["totalUsers"] == 1


def test_the_frequent_look_covers_the_last_days_alone() -> None:
    today = datetime.now(UTC).date()
    old = today - timedelta(days=30)
    put("00/a.json", entry(today), day=today)
    put("00/a.json", entry(old), day=old)

    tasks.refresh_recent.delay()

    assert list(Partition.objects.values_list("day", flat=True)) == [today]


def test_older_days_are_all_looked_at_within_the_hour_and_late_ones_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    today = datetime.now(UTC).date()
    for age in range(40):
        put("00/a.json", entry(today), day=today - timedelta(days=age))
    # A day whose objects are gone is one of them.
    gone = today - timedelta(days=50)
    counts = dict.fromkeys(("rows", "bytes", "objects_read", "duplicates", "quarantined"), 0)
    Partition.objects.create(tenant_id=TENANT, day=gone, build="b", **counts)
    looks: list[list[int]] = []

    def look(number: int) -> None:
        looks.append([])
        monkeypatch.setattr(tasks, "time", lambda: 1_800_000_000 + 300.0 * number)
        tasks.refresh_older.delay()

    def record(_: str, day: str) -> None:
        looks[-1].append((today - date.fromisoformat(day)).days)

    monkeypatch.setattr(tasks.refresh_day, "delay", record)
    for number in range(tasks.OLDER_PARTS):
        look(number)

    late = set(range(tasks.RECENT_DAYS, tasks.LATE_DAYS))
    assert all(late <= set(ages) for ages in looks)
    others = [age for ages in looks for age in ages if age not in late]
    assert sorted(others) == [*range(tasks.LATE_DAYS, 40), 50]
    assert max(len(ages) for ages in looks) <= len(late) + 4
    look(tasks.OLDER_PARTS)
    assert looks[-1] == looks[0]


def test_beat_looks_at_older_days_as_often_as_they_are_parted() -> None:
    app.loader.import_default_modules()
    schedule = app.conf.beat_schedule
    assert schedule["refresh-older-days"]["schedule"] == tasks.OLDER_SECONDS
    for planned in schedule.values():
        assert planned["task"] in app.tasks
        assert planned["options"]["expires"] < planned["schedule"]


def test_days_that_end_together_share_one_rebuild_of_their_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []

    def record(args: tuple[str], *, countdown: float) -> None:
        assert countdown == tasks.GATHER_SECONDS
        runs.extend(args)

    monkeypatch.setattr(tasks.refresh_periods, "apply_async", record)
    days = [date(2026, 1, number) for number in range(1, 6)]
    for day in days:
        put("00/a.json", entry(day), day=day)

    tasks.refresh_tenant.delay(str(TENANT), None)
    assert runs == [str(TENANT)]

    tasks.refresh_periods.apply(args=(str(TENANT),))
    assert document(Kind.MONTH, "2026-01")["totalHits"] == 5
    put("01/late.json", entry(days[0]), day=days[0])
    tasks.refresh_tenant.delay(str(TENANT), None)
    assert runs == [str(TENANT)] * 2


def test_jobs_that_meet_another_worker_or_a_failing_store_run_again() -> None:
    for job in (tasks.refresh_tenant, tasks.refresh_day, tasks.refresh_periods, tasks.clean_up):
        assert set(job.autoretry_for) == {Busy, StoreError, OperationalError, InterfaceError}
        assert (job.retry_backoff, job.max_retries) == (5, 8)


def test_builds_of_long_ago_go(settings: Any) -> None:
    settings.BUILD_LIFETIME = timedelta(days=2)
    for period, age in (("2026-01-01", timedelta(days=2, seconds=1)), ("2026-01-02", timedelta(days=1))):
        Build.objects.create(tenant_id=TENANT, period=period, started_at=now() - age)

    tasks.clean_up.delay()

    assert list(Build.objects.values_list("period", flat=True)) == ["2026-01-02"]


def test_a_killed_build_ends_in_the_table_and_one_that_runs_does_not() -> None:
    put("00/a.json", entry(DAY), day=DAY)
    assert rebuild_day(default_store(), tenant=TENANT, day=DAY)
    # Killed after it had published, before it was recorded.
    Build.objects.update(state=Build.State.RUNNING, finished_at=None)
    for period in ("2026-01-02", ""):
        Build.objects.create(tenant_id=TENANT, period=period)

    with held_by_another("2026-01-02"):
        tasks.clean_up.delay()
        assert dict(Build.objects.values_list("period", "state")) == {
            "2026-01-01": "failed",
            "2026-01-02": "running",
            "": "failed",
        }
    assert Build.objects.get(period="").error == "The worker ended before the build did."

    Build.objects.filter(period="2026-01-01").update(state=Build.State.RUNNING)
    assert not rebuild_day(default_store(), tenant=TENANT, day=DAY)
    assert Build.objects.get(period="2026-01-01").state == "failed"


@contextmanager
def held_by_another(period: str) -> Iterator[None]:
    """Hold the lock of a period's build in a database session of another worker's."""

    def hold(held: Event, goes_on: Event) -> None:
        try:
            with build_lock(tenant=TENANT, period=period, wait=False):
                held.set()
                assert goes_on.wait(30)
        finally:
            connection.close()

    held, goes_on = Event(), Event()
    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold, held, goes_on)
        assert held.wait(30)
        try:
            yield
        finally:
            goes_on.set()
        holding.result(30)


def test_periods_are_asked_for_while_a_day_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.refresh_day, "delay", lambda *_: None)
    asked: list[str] = []
    monkeypatch.setattr(tasks.refresh_periods, "apply_async", lambda given, **_: asked.extend(given))
    put("00/a.json", entry(DAY), day=DAY)
    assert rebuild_day(default_store(), tenant=TENANT, day=DAY)
    put("00/a.json", entry(date(2026, 1, 2)), day=date(2026, 1, 2))

    tasks.refresh_tenant.delay(str(TENANT), None)
    assert asked == [str(TENANT)]

    tasks.refresh_periods.apply(args=(str(TENANT),))
    tasks.refresh_tenant.delay(str(TENANT), None)
    assert asked == [str(TENANT)]


def test_unfinished_writes_go_after_a_day(object_store: Path) -> None:
    save_object(default_store(), "a", b"x")
    staged = object_store / ".staging" / "killed"
    staged.write_bytes(b"half")
    os.utime(staged, (0, 0))

    tasks.remove_unfinished_writes.delay()

    assert not staged.exists()


def test_superseded_files_go_when_their_last_readers_must_be_done() -> None:
    store = default_store()
    for name in ("old", "young"):
        save_object(store, f"{TENANT}/compacted/day=2026-01-01/{name}.parquet", b"x")
    old, young = (f"{TENANT}/compacted/day=2026-01-01/{name}.parquet" for name in ("old", "young"))
    SupersededFile.objects.create(key=old, superseded_at=now() - GRACE - timedelta(seconds=1))
    SupersededFile.objects.create(key=young, superseded_at=now())

    tasks.clean_up.delay()

    with pytest.raises(ObjectNotFound):
        read_object(store, old)
    assert read_object(store, young) == b"x"
    assert list(SupersededFile.objects.values_list("key", flat=True)) == [young]
