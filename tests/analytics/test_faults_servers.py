"""Servers that are killed and started again in the middle of a build, real ones of the test's own."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any

import environ
import pytest
from django.apps import apps
from django.db import Error, connection

from tenantadmin import embedded
from tenantadmin.objectstore import default_store
from tests.analytics.test_faults import assert_every_object_is_named, expected, refresh, shown
from tests.analytics.test_faults_around import put_days
from tests.analytics.test_rebuild import DAY, LATER, NEXT, entry, put, rebuild_all, rows_of

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
        self.start()

    def start(self) -> None:
        (self._server,) = self._opened.enter_context(
            embedded.running(self._var_dir, database=self._database, redis=not self._database)
        )

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
        address: dict[str, Any] = environ.Env.db_url_config(embedded.endpoints(var_dir).database_url)
        connection.close()
        opened.callback(connection.close)
        for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT"):
            patch.setitem(connection.settings_dict, name, address[name])
        with connection.schema_editor() as editor:
            for app in ("logs", "analytics"):
                for model in apps.get_app_config(app).get_models():
                    editor.create_model(model)
        yield server


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGQUIT])
def test_postgresql_restarted_within_a_build(
    postgresql: OwnServer, signum: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGQUIT is PostgreSQL's immediate shutdown."""
    put_days()
    rebuild_all()
    old = expected(rows_of(DAY, NEXT, LATER))
    # Before a day and a month is stored, within the transaction that publishes it, after all documents of it.
    for number, step in enumerate(
        (
            "analytics.days.upload",
            "analytics.days.save_document",
            "analytics.rebuild.upload",
            "analytics.rebuild.save_document",
        )
    ):
        put(f"01/{number}.json", entry(DAY, userName=f"u{number}"))
        new = expected(rows_of(DAY, NEXT, LATER))
        with monkeypatch.context() as patch:
            before(step, lambda: postgresql.restart(signum), patch=patch)
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
