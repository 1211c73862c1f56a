"""Builds while the database session ends, Redis fails, the disk is full, or another worker builds too."""

from __future__ import annotations

import fcntl
import os
import resource
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from threading import Event
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import Error, connection

from analytics.models import Build, Kind
from analytics.summaries.days import rebuild_day
from analytics.summaries.files import scratch_directory
from tenantadmin.lib.database.connections import Busy
from tenantadmin.lib.objectstore import LocalStore, StoreError, default_store
from tests.analytics.builds import (
    DAY,
    LATER,
    NEXT,
    assert_no_orphans,
    document,
    entry,
    expected,
    put,
    put_days,
    rebuild_all,
    refresh,
    rows_of,
    stored_documents,
)
from tests.analytics.pipeline import TENANT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


class WatchedStore(LocalStore):
    """A store that calls ``at_write`` with the number of each write before the write."""

    def __init__(self, location: Path, at_write: Callable[[int], None]) -> None:
        super().__init__(location)
        self._at_write, self._numbers = at_write, count(1)

    def save(self, name: str | None, content: Any, max_length: int | None = None) -> str:
        self._at_write(next(self._numbers))
        return super().save(name, content, max_length)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("last", [2, 8, 13], ids=["day", "month", "year"])
def test_a_build_without_its_database_session_publishes_nothing(object_store: Path, last: int) -> None:
    """The session and its locks end, as when PostgreSQL restarts."""
    put_days()
    rebuild_all()
    old = expected(rows_of(DAY, NEXT, LATER))
    put("01/late.json", entry(DAY, userName="Bo"))
    new = expected(rows_of(DAY, NEXT, LATER))
    connection.ensure_connection()
    building = connection.connection.info.backend_pid

    def end_session(number: int) -> None:
        if number == last:
            with psycopg.connect(**connection.get_connection_params() | {"context": None}) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", [building])

    with pytest.raises(Error):
        refresh(WatchedStore(object_store, end_session))
    connection.close()

    for name, seen in stored_documents().items():
        assert seen in (old[name], new[name]), name
    assert stored_documents() != new
    refresh(default_store())
    assert stored_documents() == new
    assert_no_orphans()


@pytest.mark.django_db(transaction=True)
def test_two_workers_build_a_day_only_once(object_store: Path) -> None:
    put("00/a.json", entry(DAY))
    reached, goes_on = Event(), Event()

    def wait_once(number: int) -> None:
        if number == 1:
            reached.set()
            assert goes_on.wait(30)

    def build() -> bool:
        try:
            return rebuild_day(WatchedStore(object_store, wait_once), tenant=TENANT, day=DAY)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(build)
        assert reached.wait(30)
        with pytest.raises(Busy):
            rebuild_day(default_store(), tenant=TENANT, day=DAY)
        goes_on.set()
        assert not rebuild_day(default_store(), tenant=TENANT, day=DAY, wait=True)
        assert first.result(30)
    assert Build.objects.count() == 1
    assert document(Kind.DAY, DAY.isoformat())["totalHits"] == 1


@contextmanager
def full_disk() -> Iterator[None]:
    """Limit the size of this process's files to a few bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.django_db
def test_a_full_disk_at_any_step_leaves_the_old_documents_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_days()
    rebuild_all()
    old = expected(rows_of(DAY, NEXT, LATER))
    steps = (
        "analytics.summaries.days.compact_day",
        "analytics.summaries.days.write_rollups",
        "analytics.summaries.days.upload",
        "analytics.summaries.rebuild.merge_rollups",
        "analytics.summaries.rebuild.upload",
    )
    for number, step in enumerate(steps):
        put(f"01/{number}.json", entry(DAY, userName=f"u{number}"))
        new = expected(rows_of(DAY, NEXT, LATER))
        module, _, name = step.rpartition(".")
        real = getattr(import_module(module), name)

        def on_full_disk(*args: Any, real: Any = real, **options: Any) -> Any:
            with full_disk():
                return real(*args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(step, on_full_disk)
            with pytest.raises(StoreError, match="too large"):
                refresh(default_store())
        for kind_and_period, seen in stored_documents().items():
            assert seen in (old[kind_and_period], new[kind_and_period]), step
        refresh(default_store())
        assert stored_documents() == new, step
        assert_no_orphans()
        old = new


def test_the_next_build_removes_the_working_directory_of_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    left = disk / "tenantadmin-work-left"
    (left / "spill").mkdir(parents=True)
    (left / "0000.arrow").write_bytes(b"x")
    used = disk / "tenantadmin-work-used"
    used.mkdir()
    young = disk / "tenantadmin-work-young"
    young.mkdir()
    for path in (left, used):
        os.utime(path, (0, 0))
    other = disk / "other"
    other.mkdir()
    holder = os.open(used, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)

    with scratch_directory() as own:
        assert set(disk.iterdir()) == {own, used, young, other}
        with scratch_directory() as second:
            assert set(disk.iterdir()) == {own, second, used, young, other}
    assert set(disk.iterdir()) == {used, young, other}
    os.close(holder)
