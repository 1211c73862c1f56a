"""Keep query processes for the next queries of the same tenant. Imports no Django.

A process that has run a query has started its threads and read the footers of the tenant's files, so the
tenant's next query starts at once. It never gets a query of another tenant, whose files it cannot open.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from logs.sql.process import QueryProcess
    from logs.sql.protocol import LogSource
    from logs.sql.wire import ProcessLimits


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """Limits of a kept process. Reaching one ends the process.

    Attributes:
        processes: how many idle processes are kept, half of them for one tenant. 0 keeps none.
        queries: how many queries a process runs.
        idle_seconds: how long it waits for the next one.
        processor_seconds: how much processor time all its queries may use, before the next one.
        growth_bytes: by how much its memory may grow.
    """

    processes: int = 8
    queries: int = 100
    idle_seconds: float = 60
    processor_seconds: float = 10
    growth_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True)
class LeaseKey:
    """Identifies the use of a process: a tenant, its folder at the first query, and limits."""

    tenant: str
    folder: str
    device: int
    inode: int
    limits: ProcessLimits

    @classmethod
    def of(cls, source: LogSource, limits: ProcessLimits) -> LeaseKey | None:
        """Return the key of a source, or None if it has no folder: then no process is kept."""
        if not source.folder:
            return None
        try:
            status = Path(source.folder).stat()
        except FileNotFoundError:
            return None
        return cls(source.tenant_id, source.folder, status.st_dev, status.st_ino, limits)


@dataclass(slots=True)
class Lease:
    """A process that runs a tenant's queries."""

    key: LeaseKey | None
    process: QueryProcess
    queries: int = 0
    idle_since: float = 0.0
    start_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.start_bytes = self.process.resident_bytes()


class Leases:
    """The idle processes that wait for the next query of their tenant. Threads may share it.

    Args:
        clock: a monotonic clock in seconds.
    """

    def __init__(self, options: LeaseOptions, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._lock = threading.Lock()
        #: Longest idle first.
        self._idle: list[Lease] = []

    def take(self, key: LeaseKey | None) -> Lease | None:
        """Return the idle process with this key that was used last, or None."""
        with self._lock:
            self._end_expired()
            for lease in reversed(self._idle):
                if lease.key == key:
                    self._idle.remove(lease)
                    return lease
        return None

    def give_back(self, lease: Lease) -> None:
        """Keep a process that has answered a query, or end it if it has reached a limit.

        If there are too many processes, the longest idle one ends, of this tenant first.
        """
        lease.queries += 1
        if lease.key is None or self._is_used_up(lease):
            lease.process.end()
            return
        with self._lock:
            self._end_expired()
            lease.idle_since = self._clock()
            self._idle.append(lease)
            of_tenant = [idle for idle in self._idle if idle.key and idle.key.tenant == lease.key.tenant]
            if len(of_tenant) > max(1, self._options.processes // 2):
                self._end(of_tenant[0])
            elif len(self._idle) > self._options.processes:
                self._end(self._idle[0])

    def processes(self) -> list[QueryProcess]:
        """Return the idle processes, in the order in which they became idle."""
        return [lease.process for lease in self._idle]

    def close(self) -> None:
        """End every idle process."""
        with self._lock:
            while self._idle:
                self._end(self._idle[0])

    def _is_used_up(self, lease: Lease) -> bool:
        return (
            lease.queries >= self._options.queries
            or lease.process.used_seconds() >= self._options.processor_seconds
            or lease.process.resident_bytes() - lease.start_bytes >= self._options.growth_bytes
        )

    def _end_expired(self) -> None:
        """Remove processes that waited too long or are dead. The caller holds the lock."""
        oldest = self._clock() - self._options.idle_seconds
        for lease in [idle for idle in self._idle if idle.idle_since < oldest or not idle.process.is_alive()]:
            self._end(lease)

    def _end(self, lease: Lease) -> None:
        self._idle.remove(lease)
        lease.process.end()
