"""A Celery worker that stops before its first write to the store until it is told to go on.

    python -m tests.analytics.held_worker DATABASE STORE_URL

Its broker and cache are those of ``REDIS_URL``. It tells on its output when it is ready, when it stopped
(``held``), and each task that ended by name; its input is ``go``, or ``look`` for another look at every day.
"""

from __future__ import annotations

import sys
from threading import Event, Thread
from typing import Any

import django
from django.conf import settings


def main(database: str, store_url: str) -> None:
    """Run until killed."""
    settings.DATABASES["default"]["NAME"], settings.OBJECT_STORE_URL = database, store_url
    django.setup()
    from celery import signals  # needs Django

    from analytics import tasks
    from tenantadmin.celery import app
    from tenantadmin.objectstore import LocalStore
    from tests.analytics.pipeline import TENANT

    tasks.GATHER_SECONDS = 0  # type: ignore[misc]
    goes_on = Event()

    def write_when_told(store: LocalStore, key: str, content: Any) -> None:
        if not goes_on.is_set():
            _tell("held")
            goes_on.wait()
        write(store, key, content)

    def follow() -> None:
        for line in sys.stdin:
            if line == "go\n":
                goes_on.set()
            else:
                tasks.refresh_tenant.delay(str(TENANT), None)

    write = LocalStore.write
    LocalStore.write = write_when_told  # type: ignore[method-assign,assignment]
    Thread(target=follow, daemon=True).start()
    signals.worker_ready.connect(lambda **_: _tell("ready"), weak=False)
    signals.task_postrun.connect(lambda task, state, **_: _tell(f"{task.name} {state}"), weak=False)
    app.worker_main(
        ["--quiet", "worker", "--pool=solo", "--without-gossip", "--without-mingle", "--loglevel=ERROR"]
    )


def _tell(what: str) -> None:
    # Celery makes what is printed log messages.
    print(what, file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
