"""Warm query processes, kept ready ahead of the queries.

One clean server process (`logs.sql.forkserver`) per service process forks them. Safe under threads; a
service process that forks starts anew in the child.
"""

from __future__ import annotations

import atexit
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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from logs.sql import scheduling

if TYPE_CHECKING:
    from logs.sql.wire import Preparation

#: Where the packages of this project lie: the one path that the clean interpreter is told.
_ROOT: Final = str(Path(__file__).resolve().parents[2])

#: `-I` ignores the environment and the working directory; the rest comes from this line.
_BOOT: Final = (
    "import sys; sys.path.insert(0, {root!r}); from logs.sql.forkserver import main; main({control})"
)

_ENVIRONMENT: Final = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    # Large pages, one heap, freed memory kept: of the 16,000 page faults of a query of 100 ms 1,000 are left.
    # A heap per thread would also reserve address space that the limit counts.
    "GLIBC_TUNABLES": (
        "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=33554432"
        ":glibc.malloc.trim_threshold=1073741824"
    ),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # Otherwise each query process looks up by itself where every function of the libraries is.
    "LD_BIND_NOW": "1",
    "OMP_NUM_THREADS": "1",
}

_START_SECONDS: Final = 30


class PoolBroken(Exception):
    """No query process could be had."""


@dataclass(frozen=True, slots=True)
class QueryProcess:
    """One process, good for one query: its socket and the handle that kills exactly it."""

    pid: int
    channel: socket.socket
    handle: int

    def used_seconds(self) -> float:
        """The processor time of all its threads so far; 0 once it has ended."""
        # How the kernel numbers the clock of a process (clock_getcpuclockid(3)).
        with suppress(OSError):
            return time.clock_gettime((~self.pid << 3) | 2)
        return 0.0

    def lower_priority(self, nice: int | None) -> None:
        """Let whatever else wants a processor run first: this query has had its share.

        None lets it run only when nothing else wants to. Threads that the process makes later inherit it.
        """
        with suppress(ProcessLookupError, PermissionError, FileNotFoundError):
            for thread in Path(f"/proc/{self.pid}/task").iterdir():
                if nice is None:
                    os.sched_setscheduler(int(thread.name), os.SCHED_IDLE, os.sched_param(0))
                else:
                    scheduling.yield_processor(int(thread.name), nice=nice)

    def pause(self) -> None:
        """Stop the process until `resume`, wherever it is."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill the process, if it still runs, and release both descriptors."""
        self._signal(signal.SIGKILL)
        os.close(self.handle)
        self.channel.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)


class ProcessPool:
    """Keeps ``warm`` query processes ready with the usual ``preparation``; `take` hands out one, and a thread
    replaces it.

    The replacement waits for `refill`, so that it does not take the processor from the query, unless half
    of the processes are gone.
    """

    def __init__(self, *, warm: int, preparation: Preparation) -> None:
        self._warm = warm
        self._usual = preparation
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._wanted = threading.Condition(self._lock)
        self._idle: deque[QueryProcess] = deque()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._keeper: threading.Thread | None = None
        self._closed = False

    def take(self, *, preparation: Preparation | None = None, fresh: bool = False) -> QueryProcess:
        """Return a ready process; one made now where ``fresh``, or for another preparation than the usual.

        Raises `PoolBroken` where none starts.
        """
        wanted = preparation or self._usual
        with self._lock:
            if self._closed:
                raise PoolBroken("the pool is closed")
            while self._idle and not fresh and wanted == self._usual:
                process = self._idle.popleft()
                if self._is_alive(process):
                    break
                process.end()
            else:
                process = self._start_process(wanted)
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="sql-processes", daemon=True)
                self._keeper.start()
            if len(self._idle) * 2 <= self._warm:
                self._wanted.notify()
        return process

    def refill(self) -> None:
        """Replace what was taken, in the background."""
        with self._lock:
            self._wanted.notify()

    @property
    def ready(self) -> int:
        """How many processes wait to be taken."""
        return len(self._idle)

    def waiting_pids(self) -> list[int]:
        """The ids of the processes that wait to be taken."""
        return [process.pid for process in self._idle]

    def close(self) -> None:
        """End the server and every process; the pool is of no use afterwards."""
        with self._lock:
            self._closed = True
            self._stop_server()
            self._wanted.notify_all()
        if self._keeper is not None:
            self._keeper.join()

    def forget(self) -> None:
        """Drop everything inherited from the parent of a fork, which goes on using it."""
        for process in self._idle:
            os.close(process.handle)
            process.channel.close()
        if self._control is not None:
            self._control.close()
        self._reset()

    def _keep(self) -> None:
        while True:
            with self._wanted:
                while not self._closed and len(self._idle) >= self._warm:
                    self._wanted.wait()
                if self._closed:
                    return
                try:
                    self._idle.append(self._start_process(self._usual))
                except PoolBroken:
                    # The next query tries again, and tells its caller.
                    self._wanted.wait()

    @staticmethod
    def _is_alive(process: QueryProcess) -> bool:
        poll = select.poll()
        poll.register(process.handle, select.POLLIN)
        return not poll.poll(0)

    def _start_process(self, preparation: Preparation) -> QueryProcess:
        """Ask the server, started when there is none, for one process. The caller holds the lock."""
        for _ in range(2):
            control = self._control or self._start_server()
            with suppress(OSError):
                control.send(preparation.to_bytes())
                message, descriptors, _flags, _address = socket.recv_fds(control, 32, 2)
                if message and len(descriptors) == 2:
                    return QueryProcess(int(message), socket.socket(fileno=descriptors[0]), descriptors[1])
            self._stop_server()
        raise PoolBroken("the server of query processes does not answer")

    def _start_server(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_START_SECONDS)
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOT.format(root=_ROOT, control=theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # Left as it is, so that a server which cannot start says why in the service's log.
                cwd="/",
                env=_ENVIRONMENT,
                pass_fds=(theirs.fileno(),),
                # Out of the terminal's reach, yet in the service's session: where the kernel schedules by
                # session, a priority counts only against processes of the same one.
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
