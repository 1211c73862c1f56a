"""A pool of warm query processes.

Each service process has one fork server (`logs.sql.forkserver`), which forks them. Threads may share a pool.
If a service process forks, its child starts with an empty pool.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from logs.sql.leases import LeaseOptions, Leases
from logs.sql.process import QueryProcess

if TYPE_CHECKING:
    from logs.sql.wire import ProcessLimits

#: The folder of this project's packages.
_ROOT: Final = str(Path(__file__).resolve().parents[2])

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
