"""A Celery worker that waits before its first write to the store until the test lets it continue.

    python -m tests.analytics.waiting_worker DATABASE STORE_URL

Its broker and cache are at ``REDIS_URL``. It prints ``ready`` when it has started, ``waiting`` when it waits,
and the name and state of each task that ended. Its input is ``go`` to continue, ``look`` to list all days, or
``queue`` to send the tasks of pending builds. A task that is lost is sent again after a second.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from threading import Event, Thread
from typing import Any

import django
from django.conf import settings

from tenantadmin.lib.objectstore import default_store, storage_settings


def main(database: str, store_url: str) -> None:
    """Run until killed."""
    settings.DATABASES["default"]["NAME"] = database
    settings.STORAGES["objects"] = storage_settings(store_url)
    django.setup()
    from celery import signals  # needs Django

    from analytics import tasks
    from logs import pending
    from tenantadmin.celery import app
    from tests.analytics.builds import TENANT

    pending.GATHER = timedelta()  # type: ignore[misc]
    pending.RETRY = timedelta(seconds=1)  # type: ignore[misc]
    may_write = Event()

    def write_when_allowed(store: Any, name: str, content: Any) -> str:
        if not may_write.is_set():
            _print("waiting")
            may_write.wait()
        saved: str = save(store, name, content)
        return saved

    def read_input() -> None:
        for line in sys.stdin:
            if line == "go\n":
                may_write.set()
            elif line == "look\n":
                tasks.refresh_tenant.delay(str(TENANT))
            else:
                tasks.start_jobs.delay()

    store_class: Any = type(default_store())
    save = store_class.save
    store_class.save = write_when_allowed
    Thread(target=read_input, daemon=True).start()
    signals.worker_ready.connect(lambda **_: _print("ready"), weak=False)
    signals.task_postrun.connect(lambda task, state, **_: _print(f"{task.name} {state}"), weak=False)
    app.worker_main(
        ["--quiet", "worker", "--pool=solo", "--without-gossip", "--without-mingle", "--loglevel=ERROR"]
    )


def _print(line: str) -> None:
    # Celery replaces sys.stdout to log what is printed.
    print(line, file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
