"""A Celery worker whose jobs do not end. It prints ``working`` when one runs, until it is killed.

python -m tests.analytics.endless_worker DATABASE STORE_URL TENANT JOB
"""

from __future__ import annotations

import sys
from threading import Event
from typing import Any

import django
from django.conf import settings

from tenantadmin.lib.objectstore import storage_settings


def main(database: str, store_url: str, tenant: str, job: str) -> None:
    """Run the queued replays of a tenant, or its queued search for recommendations (``job``)."""
    settings.DATABASES["default"]["NAME"] = database
    settings.STORAGES["objects"] = storage_settings(store_url)
    django.setup()
    from celery import signals  # needs Django

    from analytics import tasks
    from analytics.advice import search
    from analytics.replay import execution
    from tenantadmin.celery import app

    def work_for_ever(*_: Any, **__: Any) -> None:
        # Celery replaces sys.stdout to log what is printed.
        print("working", file=sys.__stdout__, flush=True)
        Event().wait()

    module, name, task = {
        "replay": (execution, "replay", tasks.run_replay),
        "search": (search, "mine", tasks.mine_tenant),
    }[job]
    vars(module)[name] = work_for_ever
    signals.worker_ready.connect(lambda **_: task.delay(tenant), weak=False)
    app.worker_main(
        [
            *("--quiet", "worker", "--pool=solo", "--queues=replays", "--without-gossip"),
            *("--without-mingle", "--loglevel=ERROR"),
        ]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
