"""What one cycle of beat costs when 10 tenants changed, among 1,000 tenants and among 100,000.

A cycle takes the notifications of the changed tenants, sends the tasks of their builds, and runs them. The
goal: among 100,000 tenants it takes at most 1.3 times as long as among 1,000.
"""

from __future__ import annotations

import time
import uuid
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from bench.harness import environment, show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_CHANGED: Final = 10
_ROUNDS: Final = 30
_DAYS: Final = (date(2026, 11, 22), date(2026, 11, 23))


def main() -> None:
    """Measure, and print a table."""
    with environment():
        rows: list[Sequence[object]] = []
        for count in (1_000, 100_000):
            _fill(count)
            for _ in range(3):
                _cycle()
            cycles = [_timed(_cycle) for _ in range(_ROUNDS)]
            sweeps = [_timed(_sweep) for _ in range(_ROUNDS)]
            rows.append((f"{count:,}", min(cycles), min(sweeps)))
        rows.append(("ratio", *(rows[1][column] / rows[0][column] for column in (1, 2))))  # type: ignore[operator]
        show("One cycle of beat, ms", ("tenants", f"{_CHANGED} changed", "share of the sweep"), rows)


def _fill(count: int) -> None:
    """Make rows as ``count`` tenants leave them: a place in the sweep, and builds of two days."""
    from django.db import connection  # noqa: PLC0415  # needs Django

    from logs.models import LogSweep, Partition, PendingBuild  # noqa: PLC0415

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


def _cycle() -> None:
    """Do what a cycle does. The changed days have no objects, so their builds only list them."""
    from analytics import tasks  # noqa: PLC0415  # needs Django
    from logs.models import PendingBuild  # noqa: PLC0415
    from logs.notifications import notify  # noqa: PLC0415
    from tenantadmin.celery import app  # noqa: PLC0415

    app.conf.task_always_eager = True
    for number in range(_CHANGED):
        notify(tenant=uuid.UUID(int=number * 97), days=[date(2026, 11, 24)])
    tasks.queue_builds()
    PendingBuild.objects.update(due_at=datetime.now(UTC))
    tasks.queue_builds()
    assert not PendingBuild.objects.exists()


def _sweep() -> None:
    from logs.sweep import take_next  # noqa: PLC0415  # needs Django
    from tenantadmin.lib.objectstore import default_store  # noqa: PLC0415

    take_next(default_store(), interval_seconds=60)


def _timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
