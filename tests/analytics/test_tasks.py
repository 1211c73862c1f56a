"""The jobs, run by a Celery application that executes them at once."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest
from celery.schedules import crontab
from django.contrib import admin
from django.core.cache import cache
from django.db import InterfaceError, OperationalError, connection

from analytics import tasks
from analytics.admin.model_admins import SummaryDocumentAdmin
from analytics.models import Build, Kind, MergedRollup, SummaryDocument
from analytics.numbers.days import rebuild_day
from analytics.numbers.periods import rebuild_period
from logs.models import LogSweep, Partition, PendingBuild, SupersededFile
from logs.partitions import GRACE, delete_superseded
from logs.pending import ATTEMPTS_TO_WAIT_FOR, GATHER, LONGEST_RETRY, RETRY, finish_day, mark_days, read_mark
from tenantadmin.celery import app
from tenantadmin.lib.core.queues import queue_length
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import build_lock
from tenantadmin.lib.jobs import queue
from tenantadmin.lib.objectstore import ObjectNotFound, StoreError, default_store
from tests.analytics.builds import TENANT, document, entry, put
from tests.objects import read_object, save_object

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


def settle() -> None:
    """Run all pending builds as beat and the workers do, as soon as each is due."""
    while PendingBuild.objects.exists():
        PendingBuild.objects.update(due_at=now())
        tasks.start_jobs.delay()


def test_a_listing_of_all_days_builds_them_and_their_documents() -> None:
    for day in (date(2025, 12, 31), date(2026, 1, 1)):
        put("00/a.json", entry(day), day=day)

    tasks.refresh_tenant.delay(str(TENANT))
    settle()

    assert document(Kind.YEAR, "2026")["totalHits"] == 1
    assert len(document(Kind.YEAR, "2026")["last365daysQueryActivity"]) == 2
    assert document(Kind.USERS, "")["totalUsers"] == 1
    tasks.refresh_tenant.delay(str(TENANT))
    assert not PendingBuild.objects.exists()


def test_the_sweep_lists_new_tenants_of_the_store() -> None:
    put("00/a.json", entry(DAY), day=DAY)

    tasks.sweep_logs.delay()

    assert list(PendingBuild.objects.values_list("tenant_id", "day")) == [(TENANT, DAY)]
    tasks.sweep_logs.delay()
    assert LogSweep.objects.filter(tenant_id=TENANT).count() == 1


def test_beat_runs_jobs_as_often_as_they_assume() -> None:
    app.loader.import_default_modules()
    schedule = app.conf.beat_schedule
    assert schedule["queue-builds"]["schedule"] == tasks.QUEUE_SECONDS
    assert schedule["sweep-logs"]["schedule"] == tasks.SWEEP_SECONDS
    assert schedule["receive-object-events"]["schedule"] == tasks.RECEIVE_SECONDS
    for planned in schedule.values():
        assert planned["task"] in app.tasks
        nightly = isinstance(planned["schedule"], crontab)
        assert planned["options"]["expires"] < (86_400 if nightly else planned["schedule"])


def test_finding_building_and_cleaning_have_queues_of_their_own() -> None:
    def queue_of(task: str) -> str:
        return str(app.amqp.router.route({}, f"analytics.tasks.{task}")["queue"].name)

    finding = (
        *("queue_builds", "sweep_logs", "refresh_tenant"),
        *("receive_object_events", "refresh_outdated_days"),
    )
    assert {queue_of(task) for task in finding} == {"finding"}
    assert {queue_of(task) for task in ("refresh_day", "refresh_periods")} == {"building"}
    assert {queue_of(task) for task in ("clean_up", "remove_unfinished_writes")} == {"cleaning"}
    assert queue_of("watch_service") == "celery"


def test_no_more_builds_are_sent_while_the_queue_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(tasks.refresh_day, "apply_async", lambda given, *_, **__: sent.append(given[1]))
    mark_days(tenant=TENANT, days=[DAY, date(2026, 1, 2)])
    for length in (tasks.MAX_QUEUED, tasks.MAX_QUEUED - 1):
        monkeypatch.setattr(queue, "queue_length", lambda _, length=length: length)
        tasks.start_jobs()
    assert sent == ["2026-01-01"]
    tasks.start_jobs()
    assert sent == ["2026-01-01", "2026-01-02"]


def test_the_length_of_a_queue() -> None:
    app.conf.task_always_eager = False
    assert queue_length("building") == 0
    for _ in range(2):
        tasks.refresh_day.delay(str(TENANT), "2026-01-01")
    assert (queue_length("building"), queue_length("finding")) == (2, 0)


def test_days_that_end_together_share_one_rebuild_of_their_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logs.pending.GATHER", LONGEST_RETRY)
    runs: list[str] = []
    days = [date(2026, 1, number) for number in range(1, 6)]
    for day in days:
        put("00/a.json", entry(day), day=day)
    with monkeypatch.context() as patch:
        patch.setattr(tasks.refresh_periods, "apply_async", lambda given, *_, **__: runs.extend(given))
        tasks.refresh_tenant.delay(str(TENANT))
        # A tenant has as many places at a time as a worker has processes.
        for _ in range(2):
            tasks.start_jobs.delay()
        assert runs == []
        assert list(PendingBuild.objects.values_list("day", "attempts")) == [(None, 0)]
        PendingBuild.objects.update(due_at=now())
        tasks.start_jobs.delay()
        assert runs == [str(TENANT)]

    tasks.refresh_periods(str(TENANT))
    assert document(Kind.MONTH, "2026-01")["totalHits"] == 5
    assert not PendingBuild.objects.exists()


def test_periods_wait_for_days_without_a_build() -> None:
    other = date(2026, 1, 2)
    put("00/a.json", entry(DAY), day=DAY)
    mark_days(tenant=TENANT, days=[DAY])
    tasks.refresh_day(str(TENANT), DAY.isoformat())
    put("00/a.json", entry(other), day=other)
    mark_days(tenant=TENANT, days=[other])

    tasks.refresh_periods(str(TENANT))
    assert document(Kind.MONTH, "2026-01") is None
    assert set(PendingBuild.objects.values_list("day", flat=True)) == {None, other}

    # A day that has a build already is not waited for.
    tasks.refresh_day(str(TENANT), other.isoformat())
    mark_days(tenant=TENANT, days=[other])
    tasks.refresh_periods(str(TENANT))
    assert document(Kind.MONTH, "2026-01")["totalHits"] == 2
    assert list(PendingBuild.objects.values_list("day", flat=True)) == [other]


def test_periods_do_not_wait_for_a_day_that_cannot_be_built_and_the_admin_says_so() -> None:
    other = date(2026, 1, 2)
    for day in (DAY, other):
        put("00/a.json", entry(day), day=day)
    mark_days(tenant=TENANT, days=[DAY, other])
    tasks.refresh_day(str(TENANT), DAY.isoformat())
    PendingBuild.objects.filter(day=other).update(attempts=ATTEMPTS_TO_WAIT_FOR + 1)

    tasks.refresh_periods(str(TENANT))
    assert document(Kind.MONTH, "2026-01")["totalHits"] == 1
    lacking = SummaryDocumentAdmin(SummaryDocument, admin.site).get_queryset(Mock()).filter(lacks_days=True)
    assert set(lacking.values_list("period", flat=True)) == {"2026-01", "2026", ""}

    tasks.refresh_day(str(TENANT), other.isoformat())
    assert not lacking.exists()


def test_days_that_are_built_meanwhile_do_not_hold_a_year_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """With steady logs, a day is built again between the builds of its month, its year and the history."""
    put("00/a.json", entry(DAY), day=DAY)
    mark_days(tenant=TENANT, days=[DAY])
    tasks.refresh_day(str(TENANT), DAY.isoformat())
    built: list[str] = []

    def build_the_day_again(*args: Any, period: str, **options: Any) -> bool:
        put(f"01/{len(built)}.json", entry(DAY), day=DAY)
        mark_days(tenant=TENANT, days=[DAY])
        tasks.refresh_day(str(TENANT), DAY.isoformat())
        built.append(period)
        return rebuild_period(*args, period=period, **options)

    with monkeypatch.context() as patch:
        patch.setattr(tasks, "rebuild_period", build_the_day_again)
        tasks.refresh_periods(str(TENANT))
    assert built == ["2026-01", "2026", ""]
    # They show the same days, and the next run follows at once.
    assert document(Kind.DAY, "2026-01-01")["totalHits"] == 4
    assert document(Kind.MONTH, "2026-01")["totalHits"] == document(Kind.YEAR, "2026")["totalHits"] == 1
    assert not Build.objects.exclude(state=Build.State.DONE).exists()
    row = PendingBuild.objects.get()
    assert (row.day, row.attempts) == (None, 0)
    assert row.due_at - now() <= GATHER
    tasks.refresh_periods(str(TENANT))
    assert document(Kind.YEAR, "2026")["totalHits"] == 4
    assert document(Kind.USERS, "")["users"][0]["totalHits"] == 4
    assert not PendingBuild.objects.exists()


def test_a_run_beside_another_one_is_no_failure() -> None:
    put("00/a.json", entry(DAY), day=DAY)
    mark_days(tenant=TENANT, days=[DAY])
    tasks.refresh_day(str(TENANT), DAY.isoformat())
    with held_by_another("periods"):
        tasks.refresh_periods(str(TENANT))
    assert list(Build.objects.values_list("period", "state")) == [("2026-01-01", "done")]
    row = PendingBuild.objects.get()
    assert (row.day, row.attempts) == (None, 0)
    assert timedelta(seconds=50) < row.due_at - now() <= RETRY


def test_a_year_that_waits_for_a_failed_month_is_no_failed_build(monkeypatch: pytest.MonkeyPatch) -> None:
    put("00/a.json", entry(DAY), day=DAY)
    mark_days(tenant=TENANT, days=[DAY])
    tasks.refresh_day(str(TENANT), DAY.isoformat())

    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError("cannot merge")

    with monkeypatch.context() as patch:
        patch.setattr("analytics.numbers.periods.month_document", fail)
        with pytest.raises(ValueError, match="cannot merge"):
            tasks.refresh_periods(str(TENANT))
    failed = Build.objects.filter(state=Build.State.FAILED)
    assert list(failed.values_list("period", flat=True)) == ["2026-01"]
    assert PendingBuild.objects.filter(day=None).exists()
    settle()
    assert document(Kind.YEAR, "2026")["totalHits"] == 1


def test_many_months_are_built_by_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a replaced day are deleted after a while, so a run does not begin a month later."""
    for month in (1, 2, 3):
        put("00/a.json", entry(date(2026, month, 1)), day=date(2026, month, 1))
        mark_days(tenant=TENANT, days=[date(2026, month, 1)])
        tasks.refresh_day(str(TENANT), f"2026-0{month}-01")
    clock = itertools.count(0.0, 0.6 * tasks.MONTHS_SECONDS)
    monkeypatch.setattr(tasks, "monotonic", lambda: next(clock))
    runs = 0
    while PendingBuild.objects.exists():
        before = MergedRollup.objects.count()
        tasks.refresh_periods(str(TENANT))
        runs += 1
        assert MergedRollup.objects.count() > before
        assert not PendingBuild.objects.filter(due_at__gt=now()).exists()
    assert runs == 3
    assert document(Kind.YEAR, "2026")["totalHits"] == 3


def test_a_day_that_changes_all_the_time_is_built_twice_a_minute() -> None:
    put("00/a.json", entry(DAY), day=DAY)
    mark_days(tenant=TENANT, days=[DAY])
    # Its task was sent once before, and lost.
    PendingBuild.objects.update(attempts=2, due_at=now() + 4 * RETRY)
    mark = read_mark(tenant=TENANT, day=DAY)
    mark_days(tenant=TENANT, days=[DAY])
    finish_day(tenant=TENANT, day=DAY, mark=mark)
    row = PendingBuild.objects.get(day=DAY)
    assert (row.attempts, row.due_at - row.marked_at) == (0, timedelta(seconds=30))


def test_a_day_that_another_worker_builds_is_tried_again_later() -> None:
    put("00/a.json", entry(DAY), day=DAY)
    mark_days(tenant=TENANT, days=[DAY])
    with held_by_another(DAY.isoformat()):
        tasks.start_jobs.delay()
    row = PendingBuild.objects.get()
    assert (row.day, row.attempts) == (DAY, 0)
    assert timedelta(seconds=50) < row.due_at - now() <= RETRY
    settle()
    assert document(Kind.DAY, "2026-01-01")["totalHits"] == 1


def test_a_task_without_a_pending_build_does_nothing() -> None:
    put("00/a.json", entry(DAY), day=DAY)
    tasks.refresh_day(str(TENANT), DAY.isoformat())
    tasks.refresh_periods(str(TENANT))
    assert not Partition.objects.exists()
    assert not Build.objects.exists()


def test_a_failed_build_stays_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    put("00/a.json", entry(DAY), day=DAY)
    mark_days(tenant=TENANT, days=[DAY])

    def fail(*_: Any, **__: Any) -> bool:
        raise StoreError("cannot read")

    with monkeypatch.context() as patch:
        patch.setattr(tasks, "rebuild_day", fail)
        with pytest.raises(StoreError):
            tasks.start_jobs.delay()
    assert list(PendingBuild.objects.values_list("day", "attempts")) == [(DAY, 1)]
    settle()
    assert document(Kind.MONTH, "2026-01")["totalHits"] == 1


def test_jobs_that_meet_a_failing_store_run_again() -> None:
    for job in (tasks.refresh_tenant, tasks.clean_up):
        assert set(job.autoretry_for) == {StoreError, OperationalError, InterfaceError}
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
    builds = Build.objects.filter(period="2026-01-01").order_by("started_at")
    assert list(builds.values_list("state", "rows")) == [("failed", 1), ("done", 1)]


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


def test_all_superseded_files_go_in_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logs.partitions._DELETE_BATCH", 2)
    store = default_store()
    for number in range(5):
        save_object(store, f"{TENANT}/{number}", b"x")
        SupersededFile.objects.create(key=f"{TENANT}/{number}", superseded_at=now() - 2 * GRACE)

    assert delete_superseded(store) == 5
    assert list(store.list("")) == []
    assert not SupersededFile.objects.exists()
