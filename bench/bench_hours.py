"""Measure a day that is built by hours: one new object, two workers beside one, the memory of a task.

``make bench`` runs a small day. ``--entries 10000000`` takes an hour, and 25 GB of the temporary directory.
Times are processor seconds, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from datetime import date
from typing import TYPE_CHECKING, Any
from uuid import UUID

from bench import harness, raw_logs
from logs.layout import day_prefix

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DAY = date(2026, 3, 1)
ONE, TWO, HOUR = (UUID(int=number) for number in (1, 2, 3))
NEW_HOUR = 12
_OBJECT_LINES = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=200_000, help="entries of the day")
    parser.add_argument("--runs", type=int, default=3, help="new objects, one after the other")
    parser.add_argument("--worker", metavar="TENANT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(UUID(options.worker))
        return
    with harness.environment() as directory:
        rows = measure(directory, entries=options.entries, runs=options.runs)
    harness.show(
        f"A day of {options.entries:,} entries by hours, processor seconds",
        ["work", "s", "compared to", "s", "ratio", "goal"],
        rows,
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    harness.console.print(f"{memory} MB at most in one process")


def measure(directory: Path, *, entries: int, runs: int) -> list[list[object]]:
    """Return the rows of the table."""
    from django.conf import settings  # noqa: PLC0415  # needs Django

    from analytics.summaries.days import rebuild_day  # noqa: PLC0415
    from tenantadmin.lib.objectstore import default_store  # noqa: PLC0415

    root = directory / "objects"
    write_logs(root, entries=entries)
    store = default_store()

    def build(tenant: UUID, **options: Any) -> float:
        start = time.process_time()
        assert rebuild_day(store, tenant=tenant, day=DAY, **options)
        return time.process_time() - start

    settings.BUILD_BY_HOURS_BYTES = 1
    whole = build(ONE)
    new, hours = [], []
    for number in range(runs):
        lines = raw_logs.make_lines(day=DAY, entries=1_000, seed=100 + number)
        line = next(line for hour, _, line in lines if hour == NEW_HOUR)
        for tenant in (ONE, HOUR):
            _write(root, tenant, f"{NEW_HOUR:02}/new-{number}.json", line)
        new.append(build(ONE))
        settings.BUILD_BY_HOURS_BYTES = 1 << 60
        mark_unbuilt(HOUR)
        hours.append(build(HOUR))
        settings.BUILD_BY_HOURS_BYTES = 1
    own, other = build_by_two(TWO, build)
    return [
        ["one new object", min(new), "its hour as a day", min(hours), min(new) / min(hours), 1.5],
        ["one worker", whole, "the slower of two", max(own, other), whole / max(own, other), 1.6],
    ]


def mark_unbuilt(tenant: UUID) -> None:
    """Forget the day's build, so that the next one reads all objects."""
    from logs.models import Partition  # noqa: PLC0415

    Partition.objects.filter(tenant_id=tenant).delete()


def build_by_two(tenant: UUID, build: Any) -> tuple[float, float]:
    """Build the day with the help of another process. Return the processor seconds of both."""
    command = [sys.executable, "-m", "bench.bench_hours", "--worker", str(tenant)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdout.readline()
        stdin = worker.stdin

        def send_parts(_tenant: UUID, _day: date, stage: str, parts: Mapping[int, str]) -> None:
            stdin.write(json.dumps([stage, list(parts.items())]) + "\n")
            stdin.flush()

        own = build(tenant, send_parts=send_parts)
        stdin.close()
        return own, float(worker.stdout.readline())


def work(tenant: UUID) -> None:
    """Build the parts that the input names, and print how many processor seconds it took."""
    import django  # noqa: PLC0415

    django.setup()
    from analytics.summaries.by_hours import build_part  # noqa: PLC0415
    from logs.locks import Busy  # noqa: PLC0415
    from tenantadmin.lib.objectstore import default_store  # noqa: PLC0415

    store = default_store()
    print("ready", flush=True)
    start = time.process_time()
    for line in sys.stdin:
        stage, parts = json.loads(line)
        for number, before in parts:
            try:
                build_part(store, tenant=tenant, day=DAY, stage=stage, number=number, before=before)
            except Busy:
                continue
    print(time.process_time() - start, flush=True)


def write_logs(root: Path, *, entries: int) -> None:
    """Write the same day for two tenants, and the hour of the new objects for a third."""
    lines: dict[int, list[bytes]] = {}
    count: dict[int, int] = {}

    def flush(hour: int) -> None:
        count[hour] = count.get(hour, 0) + 1
        body = b"\n".join(lines.pop(hour))
        for tenant in (ONE, TWO, *((HOUR,) if hour == NEW_HOUR else ())):
            _write(root, tenant, f"{hour:02}/{count[hour]:04}.json", body)

    for hour, _, line in raw_logs.make_lines(day=DAY, entries=entries, seed=7):
        own = lines.setdefault(hour, [])
        own.append(line)
        if len(own) == _OBJECT_LINES:
            flush(hour)
    for hour in list(lines):
        flush(hour)


def _write(root: Path, tenant: UUID, name: str, body: bytes) -> None:
    path = root / f"{day_prefix(tenant, DAY)}{name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    first = root / f"{day_prefix(ONE, DAY)}{name}"
    if tenant != ONE and first.exists():
        path.hardlink_to(first)
    else:
        path.write_bytes(body)


if __name__ == "__main__":
    main()
