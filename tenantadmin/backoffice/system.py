"""State of the service: servers, queues and jobs. Metrics and readiness probes read the same."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from uuid import UUID

import django
from django.conf import settings
from django.db import connection

from accounts.admin.base import PART, StaffPage
from analytics.queues import LongJobs, beat_age, count_running_builds, find_long_jobs
from logs.pending import PendingState, pending_state
from logs.sql.sandbox import missing_restrictions
from tenantadmin.backoffice.home import tenant_names
from tenantadmin.lib.core.probes import Probes
from tenantadmin.lib.core.queues import QUEUES, QueueState, find_workers, read_queues
from tenantadmin.lib.core.version import service_version
from tenantadmin.lib.http import health

#: Beat runs a job every ten seconds.
_LONGEST_BEAT: Final = 60.0
#: A task that waits longer than this, in seconds, needs more workers.
_LONGEST_WAIT: Final = 300.0
_DEADLINE_SECONDS: Final = 3.0
_broker: Final[Probes[str, Any]] = Probes(
    {"queues": read_queues, "beat": beat_age, "workers": find_workers}, deadline=_DEADLINE_SECONDS
)
_NAMES: Final = {health.DATABASE: "Database", health.REDIS: "Redis", health.OBJECT_STORE: "Object store"}
#: The names of the servers on the page.
SERVERS: Final = tuple(_NAMES.values())


@dataclass(frozen=True, slots=True)
class Work:
    """Queued and running builds, replays and searches, and versions."""

    pending: PendingState
    builds: int
    jobs: LongJobs
    names: Mapping[UUID, str]
    versions: Mapping[str, str]


def read_work() -> Work:
    """Return the state of jobs from the database, in a constant number of queries."""
    jobs = find_long_jobs()
    database: Any = connection
    return Work(
        pending=pending_state(),
        builds=count_running_builds(),
        jobs=jobs,
        names=tenant_names([job.tenant_id for job in jobs.replays] + [job.tenant_id for job in jobs.minings]),
        versions={
            "Service": service_version(),
            "Contract": str(settings.SPECTACULAR_SETTINGS["VERSION"]),
            "Django": django.get_version(),
            "Python": platform.python_version(),
            "PostgreSQL": ".".join(map(str, divmod(database.pg_version, 10_000))),
        },
    )


@dataclass(frozen=True, slots=True)
class Servers:
    """State of the servers. ``answers`` has the response time in ms by name; None: no answer in time."""

    answers: Mapping[str, float | None]
    queues: Sequence[QueueState] | None
    workers: Sequence[str] | None
    #: Seconds since a worker last ran a job of beat, if known.
    beat_age: float | None
    #: Restrictions of query processes that the kernel lacks, unless a SQL service runs them.
    missing: Sequence[str] = ()

    @property
    def is_beat_late(self) -> bool:
        return self.beat_age is None or self.beat_age > _LONGEST_BEAT

    @property
    def late_queues(self) -> set[str]:
        """The names of queues in which a task has waited too long."""
        return {queue.name for queue in self.queues or () if (queue.age_seconds or 0) > _LONGEST_WAIT}


def read_servers() -> Servers:
    """Check the servers, each with a deadline, so that the page never hangs."""
    answers = {
        _NAMES[server]: None if seconds is None else seconds * 1000
        for server, seconds in health.readiness.measure().items()
    }
    found = {name: None if answer is None else answer.value for name, answer in _broker.ask().items()}
    missing = () if settings.SQL_OPTIONS.service_url else missing_restrictions()
    return Servers(answers, found["queues"], found["workers"], found["beat"], missing)


class SystemPage(StaffPage):
    """Queue and job state from the database. Server checks load in a second request."""

    title = "System"
    template_name = "backoffice/system.html"
    parts: ClassVar[Mapping[str, str]] = {"servers": "backoffice/system_servers.html"}

    def read(self) -> Mapping[str, Any]:
        if self.request.GET.get(PART) == "servers":
            return {"servers": read_servers()}
        return {"work": read_work(), "names": SERVERS, "queues": QUEUES}
