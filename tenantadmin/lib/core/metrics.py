"""The metrics for Prometheus. `tenantadmin.run.metrics_server` serves them.

The processes of a container share a folder, which the settings name before the first use. Each process counts
in files of its own, which it maps into memory. The kernel ends a process that writes to a mapped file for
which the disk has no block left (SIGBUS). So a process allocates its files first, and counts only in its
memory if the disk is full.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300)
_lock: Final = Lock()
#: The sizes of a process's files. They hold every label that the service gives (`tests/tenantadmin/run`).
_FILE_BYTES: Final = {"counter": 1 << 20, "histogram": 2 << 20}
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Metrics:
    requests: Counter
    request_seconds: Histogram
    queries: Counter
    query_seconds: Histogram
    tasks: Counter
    task_seconds: Histogram
    task_wait_seconds: Histogram
    builds: Counter
    store_errors: Counter
    full_disks: Counter
    mails: Counter


def _metrics() -> _Metrics:
    # The first requests of a process come in several threads, and a metric can be registered only once.
    with _lock:
        return _make_metrics()


@cache
def _make_metrics() -> _Metrics:
    # prometheus_client reads its environment when it is imported, and the settings write it.
    from prometheus_client import REGISTRY, Counter, Histogram, values  # noqa: PLC0415

    folder = metrics_folder()
    if folder is not None and not _allocate_files(folder):
        values.ValueClass = values.MutexValue
    # With a folder, the metrics are read from its files.
    registry = REGISTRY if folder is None else None

    def counter(name: str, text: str, *labels: str) -> Counter:
        return Counter(f"tenantadmin_{name}", text, labels, registry=registry)

    def seconds(name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"tenantadmin_{name}_seconds", text, labels, buckets=_SECONDS, registry=registry)

    return _Metrics(
        requests=counter("requests", "Answered requests", "method", "route", "status"),
        request_seconds=seconds("request", "Time until the answer begins", "route"),
        queries=counter("queries", "SQL queries by outcome", "outcome"),
        query_seconds=seconds("query", "Time of SQL queries, waiting included"),
        tasks=counter("tasks", "Tasks of Celery by how they ended", "task", "state"),
        task_seconds=seconds("task", "Time of tasks", "task"),
        task_wait_seconds=seconds("task_wait", "Time from sending a task to its start", "queue"),
        builds=counter("builds", "Builds of days and of periods", "kind", "state"),
        store_errors=counter("store_errors", "Failed accesses to the object store", "verb"),
        full_disks=counter("full_disks", "Times that the disk for copies of objects was full"),
        mails=counter("mails", "Mails handed to the mail server, by how that ended", "state"),
    )


#: A fork counts in files of its own.
os.register_at_fork(after_in_child=_make_metrics.cache_clear)


def metrics_folder() -> Path | None:
    """Return the folder of the files in which the processes count, and make it. None: they have no files."""
    name = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if not name:
        return None
    folder = Path(name)
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _allocate_files(folder: Path) -> bool:
    """Allocate the files of this process. Return False if the disk does not have the space."""
    for kind, size in _FILE_BYTES.items():
        # An ended process may have left a file of this name, whose counts go on.
        target = folder / f"{kind}_{os.getpid()}.db"
        # A scrape reads all files of the folder, and fails if one is still empty.
        new = target.with_suffix(".new")
        try:
            with (target if target.exists() else new).open("ab") as file:
                os.posix_fallocate(file.fileno(), 0, size)
            if new.exists():
                new.rename(target)
        except OSError as error:
            logger.error("This process counts nothing: %s cannot be written: %s", target, error)  # noqa: TRY400
            with suppress(OSError):
                new.unlink(missing_ok=True)
            return False
    return True


def declare() -> None:
    """Create the metrics, so that Prometheus sees 0 before the first count."""
    _metrics()


def count_request(*, method: str, route: str, status: int, seconds: float) -> None:
    """Count an answered request. ``route`` is the name of its URL pattern."""
    known = method if method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} else "other"
    _metrics().requests.labels(known, route, str(status)).inc()
    _metrics().request_seconds.labels(route).observe(seconds)


def count_query(*, outcome: str, seconds: float) -> None:
    """Count a SQL query. ``outcome`` is ``ok`` or the code of an error."""
    _metrics().queries.labels(outcome).inc()
    _metrics().query_seconds.observe(seconds)


def count_task(*, task: str, state: str, seconds: float) -> None:
    """Count a task of Celery that ended."""
    _metrics().tasks.labels(task, state).inc()
    _metrics().task_seconds.labels(task).observe(seconds)


def observe_wait(*, queue: str, seconds: float) -> None:
    """Record how long a task waited in its queue."""
    _metrics().task_wait_seconds.labels(queue).observe(seconds)


def count_build(*, kind: str, state: str) -> None:
    """Count a build of a ``day`` or a ``period``."""
    _metrics().builds.labels(kind, state).inc()


def count_store_error(*, verb: str) -> None:
    """Count a failed access to the object store."""
    _metrics().store_errors.labels(verb).inc()


def count_full_disk() -> None:
    """Count that the disk had no space for a copy of an object."""
    _metrics().full_disks.inc()


def count_mails(*, state: str, count: int) -> None:
    """Count mails that were ``sent``, or that ``failed``."""
    _metrics().mails.labels(state).inc(count)
