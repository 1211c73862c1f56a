"""Servers that are killed and started again in the middle of a build, real ones of the test's own."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import environ
import pytest
from django.apps import apps
from django.db import Error, connection

from analytics.models import Kind
from tenantadmin import embedded
from tenantadmin.objectstore import default_store
from tests.analytics.builds import (
    DAY,
    LATER,
    NEXT,
    assert_every_object_is_named,
    document,
    entry,
    expected,
    find_stale,
    put,
    put_days,
    rebuild_all,
    refresh,
    rows_of,
    shown,
)
from tests.analytics.child import Child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_django import DjangoDbBlocker


def before(step: str, action: Callable[[], None], *, patch: pytest.MonkeyPatch) -> None:
    """Have ``action`` come before the first call of the function that ``step`` names."""
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
        # A Redis that is not durable comes back empty, always.
        running = embedded.running(
            self._var_dir, database=self._database, redis=not self._database, durable=self._database
        )
        (self._server,) = self._opened.enter_context(running)

    def restart(self, signum: signal.Signals) -> None:
        """End it with a signal, and start it again over what it left."""
        os.kill(self._server.pid, signum)
        self._server.wait()
        self.start()


@pytest.fixture
def postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> Iterator[OwnServer]:
    """A PostgreSQL of the test's own behind this thread's connection, with the tables of logs and rollups."""
    var_dir = tmp_path / "var"
    with ExitStack() as opened, django_db_blocker.unblock(), monkeypatch.context() as patch:
        server = OwnServer(var_dir, database=True, opened=opened)
        address: dict[str, Any] = environ.Env.db_url_config(server.endpoints.database_url)
        connection.close()
        opened.callback(connection.close)
        for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT"):
            patch.setitem(connection.settings_dict, name, address[name])
        with connection.schema_editor() as editor:
            for app in ("logs", "analytics"):
                for model in apps.get_app_config(app).get_models():
                    editor.create_model(model)
        yield server


def test_postgresql_restarted_within_a_build(postgresql: OwnServer, monkeypatch: pytest.MonkeyPatch) -> None:
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
        for name, seen in shown().items():
            assert seen in (old[name], new[name]), (step, name)
        assert shown() != new
        refresh(default_store())
        assert shown() == new, step
        assert_every_object_is_named()
        old = new


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[OwnServer]:
    """A Redis of the test's own, which forgets everything when it is killed."""
    with ExitStack() as opened:
        yield OwnServer(tmp_path / "var", database=False, opened=opened)


def read_until(worker: Child, wanted: str) -> None:
    while worker.read() != wanted:
        pass


@pytest.mark.django_db(transaction=True)
def test_redis_restarted_within_a_task_loses_what_was_queued_until_the_next_look(
    redis_server: OwnServer, settings: Any
) -> None:
    put_days()
    arguments = (str(connection.settings_dict["NAME"]), settings.OBJECT_STORE_URL)
    environment = {"REDIS_URL": redis_server.endpoints.redis_url}
    with Child("tests.analytics.held_worker", *arguments, environment=environment) as worker:
        read_until(worker, "ready")
        worker.tell("look")
        # In the task of one day; those of the others are queued.
        read_until(worker, "held")
        redis_server.restart(signal.SIGKILL)
        worker.tell("go")
        read_until(worker, "analytics.tasks.refresh_periods SUCCESS")
        assert document(Kind.DAY, DAY.isoformat())["totalHits"] == 1
        assert find_stale()[0] == [NEXT, LATER]

        worker.tell("look")
        while find_stale() != ([], []):
            read_until(worker, "analytics.tasks.refresh_periods SUCCESS")
    assert shown() == expected(rows_of(DAY, NEXT, LATER))
    assert_every_object_is_named()
