"""The Celery application. Each app defines its tasks in ``tasks``; beat starts them by this schedule."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tenantadmin.settings")

app = Celery("tenantadmin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

#: A run that no worker took before the next one is due is dropped.
app.conf.beat_schedule = {
    "refresh-recent-days": {
        "task": "analytics.tasks.refresh_recent",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "refresh-older-days": {
        "task": "analytics.tasks.refresh_older",
        "schedule": 300.0,
        "options": {"expires": 290},
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
    "remove-ended-sessions": {
        "task": "accounts.tasks.remove_ended_sessions",
        "schedule": 3600.0,
        "options": {"expires": 3500},
    },
}
