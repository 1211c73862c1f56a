"""One query process, as the service sees it. Imports no Django."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket

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
