"""PostgreSQL and Redis are killed and restarted during a build."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.db import Error, connection

from analytics.models import Kind
from logs.models import PendingBuild
from logs.pending import mark_days
from tenantadmin.conf.environment import read_database
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store
from tenantadmin.run import embedded
from tests.analytics.builds import (
    DAY,
    LATER,
    NEXT,
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
from tests.analytics.child import Child
from tests.analytics.pipeline import TENANT
from tests.analytics.workers import build_pending, pending_days, read_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_django import DjangoDbBlocker

pytestmark = pytest.mark.slow


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
        ("analytics.summaries.days.upload", signal.SIGQUIT),
        ("analytics.summaries.days.save_document", signal.SIGKILL),
        ("analytics.summaries.rebuild.upload", signal.SIGKILL),
        ("analytics.summaries.rebuild.save_document", signal.SIGQUIT),
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
