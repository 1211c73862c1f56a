"""The Celery application. Each app defines its tasks in ``tasks``; beat starts them by this schedule."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import worker_process_init
from django.conf import settings

from tenantadmin.database.limits import limit_connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tenantadmin.settings")

app = Celery("tenantadmin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect
def limit_statements(**_: Any) -> None:
    """Limit the database connections of a process that runs jobs."""
    limit_connections(
        statement_seconds=settings.DATABASE_JOB_STATEMENT_SECONDS,
        idle_transaction_seconds=settings.DATABASE_IDLE_SECONDS,
    )


#: A run that no worker took before the next one is due is dropped.
app.conf.beat_schedule = {
    "queue-builds": {
        "task": "analytics.tasks.queue_builds",
        "schedule": 10.0,
        "options": {"expires": 9},
    },
    "receive-object-events": {
        "task": "analytics.tasks.receive_object_events",
        "schedule": 10.0,
        "options": {"expires": 9},
    },
    "sweep-logs": {
        "task": "analytics.tasks.sweep_logs",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "delete-superseded-files": {
        "task": "analytics.tasks.clean_up",
        "schedule": 600.0,
        "options": {"expires": 590},
    },
    "watch-replays": {
        "task": "analytics.tasks.watch_replays",
        "schedule": 30.0,
        "options": {"expires": 29},
    },
    "refresh-digests": {
        "task": "analytics.tasks.refresh_digests",
        "schedule": 300.0,
        "options": {"expires": 290},
    },
    "mail-digests": {
        "task": "analytics.tasks.mail_digests",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "remove-unfinished-writes": {
        "task": "analytics.tasks.remove_unfinished_writes",
        "schedule": 3600.0,
        "options": {"expires": 3500},
    },
    "remove-tombstones": {
        "task": "accounts.tasks.remove_tombstones",
        "schedule": 3600.0,
        "options": {"expires": 3500},
    },
    "keep-months": {
        "task": "accounts.tasks.keep_months",
        "schedule": 3600.0,
        "options": {"expires": 3500},
    },
    "end-access": {
        "task": "accounts.tasks.end_access",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "remove-ended-sessions": {
        "task": "accounts.tasks.remove_ended_sessions",
        "schedule": 3600.0,
        "options": {"expires": 3500},
    },
}
