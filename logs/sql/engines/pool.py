"""A pool of warm query processes, kept for the next queries of the same tenant. Imports no Django.

A process that has run a query has started its threads and read the footers of the tenant's files, so the
tenant's next query starts at once. It never gets a query of another tenant, whose files it cannot open.

Each service process has one fork server (`logs.sql.forkserver`), which forks them. Threads may share a pool.
If a service process forks, its child starts with an empty pool.
"""

from __future__ import annotations

import atexit
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from logs.sql.options import LeaseOptions

if TYPE_CHECKING:
    from logs.sql.protocol import LogSource
    from logs.sql.wire import ProcessLimits

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class QueryProcess:
    """A process for a tenant's queries: its socket, and its pidfd, through which it gets signals."""

    pid: int
    channel: socket.socket
    pidfd: int

    def used_seconds(self) -> float:
        """Return the processor time of all its threads so far; 0 if the process has ended."""
        # The kernel's number for the clock of a process: see clock_getcpuclockid(3).
        with suppress(OSError):
            return time.clock_gettime((~self.pid << 3) | 2)
        return 0.0

    def resident_bytes(self) -> int:
        """Return how much memory it uses; 0 if the process has ended."""
        with suppress(OSError):
            return int(Path(f"/proc/{self.pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
        return 0

    def is_alive(self) -> bool:
        """Return True if the process has not ended."""
        return not self.wait(0)

    def wait(self, seconds: float) -> bool:
        """Wait until the process has ended. Return False if it still runs."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def lower_priority(self, nice: int) -> None:
        """Set the ``nice`` value of all threads. Threads that start later inherit it."""
        with suppress(ProcessLookupError, PermissionError, FileNotFoundError):
            for thread in Path(f"/proc/{self.pid}/task").iterdir():
                os.setpriority(os.PRIO_PROCESS, int(thread.name), nice)

    def pause(self) -> None:
        """Stop the process until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a paused process."""
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill the process if it still runs, and close both descriptors."""
        self._signal(signal.SIGKILL)
        os.close(self.pidfd)
        self.channel.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)


#: Processor seconds of each step. First, short queries run before this one. Then it joins the queue of the
#: tenant's long queries. Last, it leaves that queue, and all other queries run before it.
_LOW_PRIORITY_SECONDS: Final = 0.15

_QUEUE_SECONDS: Final = 0.5

_LOWEST_PRIORITY_SECONDS: Final = 6.0

#: The ``nice`` values of a query that is no longer short, and of one that has left the queue.
_LOW: Final = 10

_LOWEST: Final = 19

#: Minimum seconds between two updates.
_UPDATE_SECONDS: Final = 0.02


class Pausable(Protocol):
    """A running query."""

    def pause(self) -> None:
        """Stop until `resume`."""

    def resume(self) -> None:
        """Continue."""


class LongQueryQueues:
    """A queue of long queries for each tenant. The first ``width`` of a queue run, the others are paused."""

    def __init__(self, *, width: int) -> None:
        self._width = width
        self._lock = threading.Lock()
        self._queues: dict[Hashable, list[Pausable]] = {}

    def add(self, tenant: Hashable, query: Pausable) -> None:
        """Append a running query to its tenant's queue, and pause it if it must wait."""
        with self._lock:
            queue = self._queues.setdefault(tenant, [])
            queue.append(query)
            if len(queue) > self._width:
                query.pause()

    def remove(self, tenant: Hashable, query: Pausable) -> None:
        """Remove a query and let it run, and resume the next one. A query that was not added is ignored.

        The queue does not call the query's methods afterwards.
        """
        with self._lock:
            queue = self._queues.get(tenant, [])
            if query not in queue:
                return
            index = queue.index(query)
            del queue[index]
            if index >= self._width:
                query.resume()
            elif len(queue) >= self._width:
                queue[self._width - 1].resume()
            if not queue:
                del self._queues[tenant]


class QueryPriority:
    """The priority of one query process with up to ``threads`` threads. Not thread-safe.

    Each step only lowers the priority, which needs no privilege.

    Attributes:
        next_update_at: no step is due before this time of the monotonic clock.
        is_lowered: a step was taken. The priority is never raised again.
    """

    def __init__(
        self, process: QueryProcess, *, tenant: str, threads: int, long_queries: LongQueryQueues
    ) -> None:
        self._process = process
        self._threads = threads
        self._used_before = process.used_seconds()
        self.is_lowered = False
        self._leave_queue: Callable[[], None] = lambda: long_queries.remove(tenant, process)
        self._steps: list[tuple[float, Callable[[], None]]] = [
            (_LOW_PRIORITY_SECONDS, lambda: process.lower_priority(_LOW)),
            (_QUEUE_SECONDS, lambda: long_queries.add(tenant, process)),
            (_LOWEST_PRIORITY_SECONDS, self._run_after_others),
        ]
        self.next_update_at = 0.0
        self.update()

    def update(self) -> None:
        """Take the steps that are due."""
        used = self._process.used_seconds() - self._used_before
        while self._steps and used >= self._steps[0][0]:
            self.is_lowered = True
            self._steps.pop(0)[1]()
        self.next_update_at = time.monotonic() + self._seconds_to_next_step(used)

    def end(self) -> None:
        """Let the next long query run. Call this before the process ends, however the query ended."""
        self._leave_queue()

    def _run_after_others(self) -> None:
        self._process.lower_priority(_LOWEST)
        self._leave_queue()

    def _seconds_to_next_step(self, used: float) -> float:
        if not self._steps:
            return math.inf
        return max((self._steps[0][0] - used) / self._threads, _UPDATE_SECONDS)


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


#: The folder of this project's packages.
_ROOT: Final = str(Path(__file__).resolve().parents[3])

#: The program of the fork server. It runs with `-I`, which ignores the environment and working directory.
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, {root!r}); from logs.sql.forkserver import main; main({control})"
)

_ENVIRONMENT: Final = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # Resolve the libraries' functions here, once, and not in every query process.
    "LD_BIND_NOW": "1",
    "OMP_NUM_THREADS": "1",
}

_START_SECONDS: Final = 30

#: How long a process may take to end after it has closed its socket.
_END_SECONDS: Final = 1.0


class PoolBroken(Exception):
    """No query process could be started."""


class ProcessPool:
    """Keeps ``warm`` query processes ready, which have set ``limits`` on themselves.

    A background thread replaces the processes that `take` returned.
    """

    def __init__(self, *, warm: int, limits: ProcessLimits, leases: LeaseOptions | None = None) -> None:
        self._warm = warm
        self._limits = limits
        self._lease_options = leases or LeaseOptions()
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._needs_refill = threading.Condition(self._lock)
        self._idle: deque[QueryProcess] = deque()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._refill_thread: threading.Thread | None = None
        self._closed = False
        #: Processes that wait for the next query of their tenant.
        self.leases = Leases(self._lease_options)

    def take(self, *, limits: ProcessLimits | None = None, fresh: bool = False) -> QueryProcess:
        """Return a ready process. Start a new one if ``fresh``, or if ``limits`` differ from the pool's.

        Raises:
            PoolBroken: no process could be started.
        """
        limits = limits or self._limits
        with self._lock:
            if self._closed:
                raise PoolBroken("the pool is closed")
            while self._idle and not fresh and limits == self._limits:
                process = self._idle.popleft()
                if process.is_alive():
                    break
                process.end()
            else:
                process = self._start_process(limits)
            if self._refill_thread is None:
                self._refill_thread = threading.Thread(
                    target=self._refill_forever, name="sql-processes", daemon=True
                )
                self._refill_thread.start()
            self._needs_refill.notify()
        return process

    def was_killed(self, process: QueryProcess) -> bool:
        """Return True if something else killed an ended process, such as the kernel for want of memory."""
        process.wait(_END_SECONDS)
        with self._lock:
            if self._control is None:
                return True
            try:
                self._control.send(str(process.pid).encode())
                return int(self._control.recv(32) or signal.SIGKILL) == signal.SIGKILL
            except OSError:
                # The query processes end with the fork server.
                self._stop_server()
                return True

    @property
    def ready(self) -> int:
        """The number of idle processes."""
        return len(self._idle)

    def idle_pids(self) -> list[int]:
        """Return the ids of the idle processes."""
        return [process.pid for process in self._idle]

    def close(self) -> None:
        """End the fork server and every process. The pool cannot be used afterwards."""
        with self._lock:
            self._closed = True
            self.leases.close()
            self._stop_server()
            self._needs_refill.notify_all()
        if self._refill_thread is not None:
            self._refill_thread.join()

    def forget(self) -> None:
        """Close what a forked child inherited. The parent still uses it."""
        for process in [*self._idle, *self.leases.processes()]:
            os.close(process.pidfd)
            process.channel.close()
        if self._control is not None:
            self._control.close()
        self._reset()

    def _refill_forever(self) -> None:
        while True:
            with self._needs_refill:
                while not self._closed and len(self._idle) >= self._warm:
                    self._needs_refill.wait()
                if self._closed:
                    return
                try:
                    self._idle.append(self._start_process(self._limits))
                except PoolBroken:
                    # The next query tries again, and reports the error to its caller.
                    self._needs_refill.wait()

    def _start_process(self, limits: ProcessLimits) -> QueryProcess:
        """Ask the fork server for a process; start the server if necessary. The caller holds the lock."""
        for _ in range(2):
            control = self._control or self._start_server()
            with suppress(OSError):
                control.send(limits.to_bytes())
                message, descriptors, _flags, _address = socket.recv_fds(control, 32, 2)
                if message and len(descriptors) == 2:
                    return QueryProcess(int(message), socket.socket(fileno=descriptors[0]), descriptors[1])
            self._stop_server()
        raise PoolBroken("the fork server of query processes does not answer")

    def _start_server(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_START_SECONDS)
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM.format(root=_ROOT, control=theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # stderr is inherited: a server that cannot start says why in the service's log.
                cwd="/",
                # A heap for each thread of the engine: with one heap for all, they wait for each other, and
                # queries over many files took up to twice the time.
                env={**_ENVIRONMENT, "GLIBC_TUNABLES": f"glibc.malloc.arena_max={self._limits.threads}"},
                pass_fds=(theirs.fileno(),),
                # Ctrl-C in a terminal does not reach the group. The session stays the service's: some kernels
                # compare priorities only between processes of one session.
                process_group=0,
            )
        self._control = ours
        return ours

    def _stop_server(self) -> None:
        while self._idle:
            self._idle.popleft().end()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None


_pools: weakref.WeakSet[ProcessPool] = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


os.register_at_fork(after_in_child=_forget_all)


atexit.register(_close_all)
