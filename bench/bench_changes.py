"""A cycle of beat when 10 tenants changed: among 100,000 tenants beside 1,000.

A cycle takes the notifications of the changed tenants, sends the tasks of their builds, and runs them. The
changed days have no objects, so this is what the service adds to the builds.
"""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from pathlib import Path

from django.db import connection

from analytics import tasks
from bench.harness import Compared, show, time_of
from logs.models import LogSweep, Partition, PendingBuild
from logs.notifications import notify, take_next
from tenantadmin.celery import app
from tenantadmin.lib.objectstore import default_store

_CHANGED = 10
_DAYS = (date(2026, 11, 22), date(2026, 11, 23))


def main(_: Path, *, tenants: int = 100_000, few: int = 1_000, rounds: int = 30) -> None:
    app.conf.task_always_eager = True
    measured = []
    for count in (tenants, few):
        fill(count)
        for _round in range(3):
            run_cycle()
        # The fastest, because some of them meet the work of the database's own processes.
        measured.append(
            [min(time_of(work) for _ in range(rounds)) for work in (run_cycle, take_share_of_sweep)]
        )
    (cycle, share), (cycle_of_few, share_of_few) = measured
    show(
        f"Beat with {tenants:,} tenants",
        "ms",
        [
            Compared(f"a cycle, {_CHANGED} tenants changed", cycle, f"{few:,} tenants", cycle_of_few, 1.3),
            Compared("a minute's share of the sweep", share, f"{few:,} tenants", share_of_few),
        ],
    )


def fill(count: int) -> None:
    """Make rows as ``count`` tenants leave them: a place in the sweep, and builds of two days."""
    for model in (LogSweep, Partition, PendingBuild):
        model.objects.all().delete()
    tenants = [uuid.UUID(int=number) for number in range(count)]
    moment = datetime.now(UTC)
    LogSweep.objects.bulk_create(
        [LogSweep(tenant_id=tenant, listed_at=moment) for tenant in [*tenants, None]], batch_size=5_000
    )
    counts = dict.fromkeys(("rows", "bytes", "objects_read", "duplicates", "quarantined"), 0)
    Partition.objects.bulk_create(
        [Partition(tenant_id=tenant, day=day, build="b", **counts) for tenant in tenants for day in _DAYS],
        batch_size=5_000,
    )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE logs_logsweep, logs_partition, logs_pendingbuild")


def run_cycle() -> None:
    for number in range(_CHANGED):
        notify(tenant=uuid.UUID(int=number * 97), days=[date(2026, 11, 24)])
    tasks.start_jobs()
    PendingBuild.objects.update(due_at=datetime.now(UTC))
    tasks.start_jobs()
    assert not PendingBuild.objects.exists()


def take_share_of_sweep() -> None:
    take_next(default_store(), interval_seconds=60)
