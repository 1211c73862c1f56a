"""A Celery worker whose replays do not end. It prints ``replaying`` when one runs, until it is killed.

python -m tests.analytics.replay.endless_worker DATABASE STORE_URL TENANT
"""

from __future__ import annotations

import sys
from threading import Event
from typing import Any

import django
from django.conf import settings

from tenantadmin.objectstore import storage_settings


def main(database: str, store_url: str, tenant: str) -> None:
    """Run the queued replays of a tenant."""
    settings.DATABASES["default"]["NAME"] = database
    settings.STORAGES["objects"] = storage_settings(store_url)
    django.setup()
    from celery import signals  # needs Django

    from analytics import tasks
    from analytics.replay import runs
    from tenantadmin.celery import app

    def replay_for_ever(*_: Any, **__: Any) -> None:
        # Celery replaces sys.stdout to log what is printed.
        print("replaying", file=sys.__stdout__, flush=True)
        Event().wait()

    vars(runs)["replay"] = replay_for_ever
    signals.worker_ready.connect(lambda **_: tasks.run_replay.delay(tenant), weak=False)
    app.worker_main(
        [
            *("--quiet", "worker", "--pool=solo", "--queues=replays", "--without-gossip"),
            *("--without-mingle", "--loglevel=ERROR"),
        ]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
