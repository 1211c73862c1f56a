"""The Celery application. Each app defines its tasks in ``tasks``; beat starts them by this schedule."""

from __future__ import annotations

import os
import time
from typing import Any

from celery import Celery
from celery.schedules import crontab
from celery.signals import (
    beat_init,
    before_task_publish,
    heartbeat_sent,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_process_init,
    worker_ready,
)
from django.conf import settings
from django.utils.module_loading import import_string

from tenantadmin.lib.core import queues
from tenantadmin.lib.core.memory import give_memory_back
from tenantadmin.lib.core.metrics import count_task, observe_wait
from tenantadmin.lib.core.request_context import (
    begin_request,
    clear_description,
    current_request_id,
    describe_request,
)
from tenantadmin.lib.database.connections import limit_connections
from tenantadmin.run import alive, telemetry

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tenantadmin.settings")

app = Celery("tenantadmin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect
def start_process(**_: Any) -> None:
    """Prepare a process that runs jobs: memory, limits of statements, reports of errors and traces."""
    give_memory_back()
    limit_connections(
        statement_seconds=settings.DATABASE_JOB_STATEMENT_SECONDS,
        idle_transaction_seconds=settings.DATABASE_IDLE_SECONDS,
    )
    telemetry.start()


@setup_logging.connect
def keep_logging(**_: Any) -> None:
    """Keep the logging of the settings. Celery sets up its own unless a receiver is connected."""


@before_task_publish.connect
def stamp_task(headers: dict[str, Any], **_: Any) -> None:
    """Add the time and the id of the request to the headers of a task."""
    headers["sent_at"] = time.time()
    headers["request_id"] = current_request_id()


@task_prerun.connect
def begin_task(task: Any, task_id: str, args: Any, **_: Any) -> None:
    """Set the log fields while a task runs, and record how long it waited."""
    if task.request.is_eager:
        return
    asked_by = task.request.get("request_id")
    begin_request(task_id if asked_by in {None, "-"} else asked_by)
    clear_description()
    describe_request(task=task.name, tenant=args[0] if args else "")
    task.request.began_at = time.monotonic()
    # The wait includes the delay of a delayed task.
    sent_at = task.request.get("sent_at")
    if sent_at is not None and not task.request.get("eta"):
        queue = (task.request.get("delivery_info") or {}).get("routing_key") or "-"
        observe_wait(queue=queue, seconds=max(0.0, time.time() - sent_at))


@task_postrun.connect
def end_task(task: Any, state: str | None, **_: Any) -> None:
    """Count a task that ended."""
    began_at = task.request.get("began_at")
    if began_at is not None:
        count_task(task=task.name, state=state or "-", seconds=time.monotonic() - began_at)


@worker_ready.connect
def start_worker_metrics(**_: Any) -> None:
    """Serve metrics. The module needs Django to be ready."""
    alive.touch("worker")
    import_string("tenantadmin.run.metrics_server.start")()


@heartbeat_sent.connect
def keep_worker_alive(**_: Any) -> None:
    """Touch the file that the worker's probe checks."""
    alive.touch("worker")


@beat_init.connect
def start_beat(**_: Any) -> None:
    """Serve metrics. Touch the file that beat's probe checks, now and whenever beat sends a task."""
    telemetry.start()
    alive.touch("beat")
    before_task_publish.connect(lambda **_: alive.touch("beat"), weak=False)
    import_string("tenantadmin.run.metrics_server.start")()


#: The queue of each task that is not quick. All other tasks go to the default queue.
_QUEUES = {
    queues.FINDING: (
        *("queue_builds", "sweep_logs", "refresh_tenant", "refresh_outdated_days", "receive_object_events"),
    ),
    queues.BUILDING: ("refresh_day", "build_day_part", "refresh_periods", "refresh_digests"),
    queues.CLEANING: ("clean_up", "remove_unfinished_writes"),
    queues.REPLAYS: ("run_replay", "mine_tenant", "measure_tenant"),
}
app.conf.task_routes = {
    f"analytics.tasks.{task}": {"queue": queue} for queue, tasks in _QUEUES.items() for task in tasks
}

#: Each task that beat starts, how often or when, and the seconds after which a run is dropped if no worker
#: has taken it, before the next run is due.
_SCHEDULE = (
    ("analytics.tasks.queue_builds", 2.0, 1.5),
    ("analytics.tasks.receive_object_events", 10.0, 9),
    ("analytics.tasks.sweep_logs", 60.0, 55),
    ("analytics.tasks.refresh_outdated_days", 60.0, 55),
    ("analytics.tasks.clean_up", 600.0, 590),
    ("analytics.tasks.watch_service", 60.0, 55),
    ("analytics.tasks.send_outbox", 2.0, 1.5),
    # At night, when the day before is complete.
    ("analytics.tasks.mine_every_tenant", crontab(hour=2, minute=20), 3600),
    ("analytics.tasks.measure_effects", crontab(hour=3, minute=20), 3600),
    ("analytics.tasks.remove_unfinished_writes", 3600.0, 3500),
    ("accounts.tasks.remove_tombstones", 3600.0, 3500),
    ("accounts.tasks.keep_months", 3600.0, 3500),
    ("accounts.tasks.end_access", 60.0, 55),
    ("accounts.tasks.remove_ended_sessions", 3600.0, 3500),
    ("accounts.tasks.remove_old_invitations", 3600.0, 3500),
    ("accounts.tasks.mail_ends_of_tokens", 3600.0, 3500),
)
app.conf.beat_schedule = {
    task.rpartition(".")[2].replace("_", "-"): {
        "task": task,
        "schedule": schedule,
        "options": {"expires": expires},
    }
    for task, schedule, expires in _SCHEDULE
}
