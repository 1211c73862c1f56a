"""What an operator may set of SQL over the log, for the service and for an SQL service of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from logs.sql.protocol import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """How queries run, and where.

    ``slots`` query processes at once in one service process, ``slots_per_tenant`` of them of one tenant,
    ``queue`` more queries may wait, ``warm`` processes are kept ready. ``cache_bytes`` bounds the copies of
    files of a remote store. ``service_url`` names an SQL service that runs the queries instead; it and its
    callers share ``service_secret``.
    """

    limits: Limits
    slots: int
    slots_per_tenant: int
    queue: int
    warm: int
    cache_bytes: int
    service_url: str
    service_secret: str


def options_from(values: Mapping[str, Any]) -> SqlOptions:
    """Return the options of a configuration: the values of ``SQL_…`` by their names."""
    return SqlOptions(
        limits=Limits(
            seconds=values["SQL_TIMEOUT_SECONDS"],
            max_rows=values["SQL_MAX_ROWS"],
            max_bytes=values["SQL_MAX_BYTES"],
            memory_bytes=values["SQL_MEMORY_BYTES"],
            threads=values["SQL_THREADS"],
        ),
        slots=values["SQL_SLOTS"],
        slots_per_tenant=values["SQL_SLOTS_PER_TENANT"],
        queue=values["SQL_QUEUE"],
        warm=values["SQL_WARM_PROCESSES"],
        cache_bytes=values["SQL_CACHE_BYTES"],
        service_url=values["SQL_SERVICE_URL"] or "",
        service_secret=values["SQL_SERVICE_SECRET"] or "",
    )
