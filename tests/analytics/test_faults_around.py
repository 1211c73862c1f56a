"""What goes wrong around builds: stores, disks, servers and workers that fail."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.apps import apps
from django.db import Error, connection

from analytics.models import Build, Kind
from analytics.numbers.days import rebuild_day
from analytics.numbers.store import scratch_directory
from logs.models import PendingBuild
from logs.pending import mark_days
from tenantadmin.conf.environment import read_database
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import Busy
from tenantadmin.lib.objectstore import LocalStore, StoreError, default_store
from tenantadmin.run import embedded
from tests.analytics.builds import (
    DAY,
    LATER,
    NEXT,
    TENANT,
    assert_no_orphans,
    document,
    entry,
    expected,
    find_stale,
    put,
    put_days,
    rebuild_all,
    refresh,
    rows_of,
    stored_documents,
)
from tests.analytics.workers import Child, build_pending, pending_days, read_until

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker


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
        "analytics.numbers.days.compact_day",
        "analytics.numbers.days.write_rollups",
        "analytics.numbers.days.upload",
        "analytics.numbers.periods.merge_rollups",
        "analytics.numbers.periods.upload",
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


def before(step: str, action: Callable[[], None], *, patch: pytest.MonkeyPatch) -> None:
    """Run ``action`` before the first call of the function with the dotted name ``step``."""
    module, _, name = step.rpartition(".")
    real = getattr(import_module(module), name)

    def act_once(*arguments: Any, **options: Any) -> Any:
        patch.setattr(step, real)
        action()
        return real(*arguments, **options)

    patch.setattr(step, act_once)


class OwnServer:
    """A server that the test may kill."""

    def __init__(self, var_dir: Path, *, database: bool, opened: ExitStack) -> None:
        self._var_dir, self._database, self._opened = var_dir, database, opened
        self.endpoints = embedded.endpoints(var_dir)
        self.start()

    def start(self) -> None:
        # Redis must start empty, so it does not save its data.
        running = embedded.running(
            self._var_dir, database=self._database, redis=not self._database, durable=self._database
        )
        (self._server,) = self._opened.enter_context(running)

    def restart(self, signum: signal.Signals) -> None:
        """End the server with a signal, and start it again with its data."""
        os.kill(self._server.pid, signum)
        self._server.wait()
        self.start()


@pytest.fixture
def postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> Iterator[OwnServer]:
    """Connect this thread to a PostgreSQL of the test's own, with the tables that builds and digests use."""
    var_dir = tmp_path / "var"
    with ExitStack() as opened, django_db_blocker.unblock(), monkeypatch.context() as patch:
        server = OwnServer(var_dir, database=True, opened=opened)
        address: dict[str, Any] = read_database(server.endpoints.database_url)
        connection.close()
        opened.callback(connection.close)
        for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT"):
            patch.setitem(connection.settings_dict, name, address[name])
        with connection.schema_editor() as editor:
            for app in ("accounts", "mfa", "logs", "analytics"):
                for model in apps.get_app_config(app).get_models():
                    editor.create_model(model)
        yield server


def test_a_build_survives_a_restart_of_postgresql(
    postgresql: OwnServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a day and a month is stored, and within the transaction that publishes it.

    SIGQUIT is PostgreSQL's immediate shutdown.
    """
    put_days()
    rebuild_all()
    old = expected(rows_of(DAY, NEXT, LATER))
    steps = (
        ("analytics.numbers.days.upload", signal.SIGQUIT),
        ("analytics.numbers.days.save_document", signal.SIGKILL),
        ("analytics.numbers.periods.upload", signal.SIGKILL),
        ("analytics.numbers.periods.save_document", signal.SIGQUIT),
    )
    for number, (step, signum) in enumerate(steps):
        put(f"01/{number}.json", entry(DAY, userName=f"u{number}"))
        new = expected(rows_of(DAY, NEXT, LATER))
        with monkeypatch.context() as patch:
            before(step, partial(postgresql.restart, signum), patch=patch)
            with pytest.raises(Error):
                refresh(default_store())
        connection.close()
        for name, seen in stored_documents().items():
            assert seen in (old[name], new[name]), (step, name)
        assert stored_documents() != new
        refresh(default_store())
        assert stored_documents() == new, step
        assert_no_orphans()
        old = new


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[OwnServer]:
    """A Redis of the test's own. It loses its data when it is killed."""
    with ExitStack() as opened:
        yield OwnServer(tmp_path / "var", database=False, opened=opened)


@pytest.mark.django_db(transaction=True)
def test_tasks_that_redis_lost_are_sent_again(redis_server: OwnServer, object_store: Path) -> None:
    put_days()
    arguments = (str(connection.settings_dict["NAME"]), object_store.as_uri())
    environment = {"REDIS_URL": redis_server.endpoints.redis_url}
    with Child("tests.analytics.waiting_worker", *arguments, environment=environment) as worker:
        read_until(worker, "ready")
        worker.send("look")
        read_until(worker, "analytics.tasks.refresh_tenant SUCCESS")
        worker.send("queue")
        # The worker is in the task of one day. The tasks of the other days are queued.
        read_until(worker, "waiting")
        redis_server.restart(signal.SIGKILL)
        worker.send("go")
        read_until(worker, "analytics.tasks.refresh_day SUCCESS")
        assert document(Kind.DAY, DAY.isoformat())["totalHits"] == 1
        assert set(pending_days()) == {None, NEXT, LATER}

        build_pending(worker)
    assert find_stale() == ([], [])
    assert stored_documents() == expected(rows_of(DAY, NEXT, LATER))
    assert_no_orphans()


@pytest.mark.django_db(transaction=True)
def test_the_build_of_a_killed_worker_starts_again(redis_server: OwnServer, object_store: Path) -> None:
    put_days()
    mark_days(tenant=TENANT, days=[DAY, NEXT, LATER])
    arguments = (str(connection.settings_dict["NAME"]), object_store.as_uri())
    environment = {"REDIS_URL": redis_server.endpoints.redis_url}
    with Child("tests.analytics.waiting_worker", *arguments, environment=environment) as worker:
        read_until(worker, "ready")
        worker.send("queue")
        read_until(worker, "waiting")
        worker.kill()
    assert pending_days() == [DAY, NEXT, LATER]
    assert PendingBuild.objects.filter(due_at__gt=now() + timedelta(minutes=2)).count() == 0
    assert document(Kind.MONTH, "2025-12") is None

    with Child("tests.analytics.waiting_worker", *arguments, environment=environment) as worker:
        read_until(worker, "ready")
        worker.send("go")
        build_pending(worker)
    assert stored_documents() == expected(rows_of(DAY, NEXT, LATER))
    assert_no_orphans()
