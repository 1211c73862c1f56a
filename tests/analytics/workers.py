"""Let Celery workers of the test's own build what is pending (`tests.analytics.waiting_worker`)."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from logs.models import PendingBuild
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from datetime import date

    from tests.analytics.child import Child


def read_until(worker: Child, wanted: str) -> None:
    while worker.read() != wanted:
        pass


def pending_days() -> list[date | None]:
    return list(PendingBuild.objects.order_by("day").values_list("day", flat=True))


def build_pending(worker: Child) -> None:
    """Let the worker send the tasks of all pending builds, as soon as they are due, until none is left."""
    while PendingBuild.objects.exists():
        with transaction.atomic():
            # Without those that a worker is changing: it may wait for others of them.
            free = PendingBuild.objects.select_for_update(skip_locked=True)
            due = list(free.filter(due_at__lte=now() + timedelta(minutes=2)).values_list("pk", flat=True))
            PendingBuild.objects.filter(pk__in=due).update(due_at=now())
        worker.send("queue")
        read_until(worker, "analytics.tasks.queue_builds SUCCESS")
        time.sleep(0.2)
