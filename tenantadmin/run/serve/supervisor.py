"""Runs the processes of the service until a signal comes, and starts a process that ends again.

Why with threads, and without a library: docs/decisions/0004-web-server-and-supervisor.md
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import IO, TYPE_CHECKING

from tenantadmin.lib.terminal import visible
from tenantadmin.run.embedded.layout import EmbeddedError
from tenantadmin.run.embedded.monitor import describe_end, die_with_parent
from tenantadmin.run.serve import reaper, web

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from tenantadmin.run.embedded import Server


class _BestEffortFile(io.FileIO):
    """A file that drops what cannot be written."""

    def write(self, data: Buffer, /) -> int:
        try:
            written = super().write(data)
        except OSError:
            written = None
        # None also where the file would block.
        return memoryview(data).nbytes if written is None else written


def ignore_write_errors() -> None:
    """Replace standard output and error by streams that write each line at once and never fail."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            raw = _BestEffortFile(stream.fileno(), "wb", closefd=False)
            lines = io.TextIOWrapper(
                io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=True
            )
            setattr(sys, name, lines)


#: How long the processes have to end after SIGTERM. The web server takes longest: it finishes its requests.
STOP_SECONDS = web.STOP_SECONDS + 2.0

#: A process that ended starts again after the first of these times. The time doubles up to the second while
#: the process ends within the second.
AGAIN_SECONDS = (1.0, 60.0)

#: The announcement is printed again when the later processes have been silent for the first of these times,
#: at latest after the second.
_REPEAT_SECONDS = (5.0, 60.0)

#: How long we wait for a killed process and the rest of its output.
_KILL_SECONDS = 1.0

_REAPER = (sys.executable, "-I", "-S", reaper.__file__)

#: Cyan, yellow, green, magenta, red, blue.
_ANSI_COLOURS = (36, 33, 32, 35, 31, 34)


class Supervisor:
    """Runs commands as processes, each in its own process group, and prints their output."""

    def __init__(self, commands: Mapping[str, Sequence[str]], *, env: Mapping[str, str]) -> None:
        """`commands` holds the arguments of each process by its name."""
        self._commands = commands
        self._env = env
        self._name_width = max(len(name) for name in ("system", *commands))
        self._colours = dict(zip(commands, _ANSI_COLOURS, strict=False))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._threads: list[threading.Thread] = []
        self._print_lock = threading.Lock()
        self._stopping = threading.Event()
        #: Set when `on_start` has returned. An end before that is a failure of the start.
        self._ready = threading.Event()
        self._reaper: IO[str] | None = None
        self._relayed_at = 0.0
        self._delays: dict[str, float] = {}
        #: Reasons to stop: a failure as a sentence, a signal, or an error in a thread. The first one counts.
        #: A list names processes to start. The main thread does that: the kernel ends a process together
        #: with the thread that started it.
        self._reasons: queue.SimpleQueue[str | signal.Signals | Exception | list[str]] = queue.SimpleQueue()

    def run(
        self,
        *,
        servers: Sequence[Server],
        on_start: Callable[[threading.Event], str | None],
        later: Collection[str] = (),
    ) -> str | None:
        """Run until SIGINT or SIGTERM comes. A process or one of `servers` that ends is started again.

        `on_start` runs beside the processes and returns a text to print. It gets an event that is set when
        they are stopped. If a process ends before `on_start` has returned, everything is stopped. Then the
        processes start that `later` names, and the text is printed again below their first messages.

        Returns what failed as a sentence without its full stop, None when a signal came.
        """
        with contextlib.ExitStack() as stack:
            for signum in (signal.SIGINT, signal.SIGTERM):
                stack.callback(signal.signal, signum, signal.signal(signum, self._on_signal))
            reaping = subprocess.Popen(
                _REAPER, stdin=subprocess.PIPE, start_new_session=True, text=True, bufsize=1
            )
            stack.callback(reaping.communicate)
            stack.callback(self._kill)
            self._reaper = reaping.stdin
            self._start_all([name for name in self._commands if name not in later])
            for server in servers:
                self._print(f"{server.name} runs (pid={server.pid})")
                self._in_thread(self._watch_server, server)
            self._in_thread(self._announce, on_start, later)
            while isinstance(reason := self._reasons.get(), list):
                self._start_all(reason)
            return self._stop(reason)

    def _start_all(self, names: Collection[str]) -> None:
        started = {name: self._start(name, self._commands[name]) for name in names}
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for name, process in started.items():
            self._notify_reaper(process.pid)
            self._threads.append(self._in_thread(self._relay, name, process))
            self._threads.append(self._in_thread(self._watch, name, process))

    def _notify_reaper(self, group: int) -> None:
        # The service works without its reaper, if that was killed.
        with contextlib.suppress(BrokenPipeError):
            print(group, file=self._reaper)

    def _on_signal(self, signum: int, _frame: object) -> None:
        # It may interrupt a line that is being printed, so it prints none.
        self._reasons.put(signal.Signals(signum))

    def _start(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        process = self._processes[name] = subprocess.Popen(
            command,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=partial(  # noqa: PLW1509 - it takes no lock that a thread may hold
                die_with_parent, signal.SIGTERM, parent=os.getpid()
            ),
        )
        self._print(f"{name} started (pid={process.pid})")
        return process

    def _in_thread(self, function: Callable[..., None], *args: object) -> threading.Thread:
        """Call the function in a thread. An error stops everything."""

        def call() -> None:
            try:
                function(*args)
            except Exception as error:  # noqa: BLE001 - raised in the main thread
                self._reasons.put(error)

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        return thread

    def _relay(self, name: str, process: subprocess.Popen[bytes]) -> None:
        for line in process.stdout or ():
            self._relayed_at = time.monotonic()
            self._print(line.decode(errors="replace"), name=name)

    def _watch(self, name: str, process: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        code = process.wait()
        # The workers of a killed web server would continue, and keep its output open.
        _kill_group(process)
        self._notify_reaper(-process.pid)
        self._print(f"{name} stopped (rc={code})")
        # The status word of a wait.
        if self._wait_to_start(name, describe_end(-code if code < 0 else code << 8), began=began):
            self._reasons.put([name])

    def _watch_server(self, server: Server) -> None:
        while True:
            began = time.monotonic()
            end = server.wait()
            while self._wait_to_start(server.name, end, began=began):
                try:
                    server.start_again()
                except EmbeddedError as error:
                    end, began = str(error).removeprefix(f"{server.name} "), time.monotonic()
                else:
                    self._print(f"{server.name} runs (pid={server.pid})")
                    break
            else:
                return

    def _wait_to_start(self, name: str, end: str, *, began: float) -> bool:
        """Wait before a process or server that ended starts again. Return False if everything stops."""
        if self._stopping.is_set():
            return False
        if not self._ready.is_set():
            self._reasons.put(f"{name} {end}")
            return False
        first, longest = AGAIN_SECONDS
        lasted = time.monotonic() - began
        delay = min(2 * self._delays.get(name, first / 2), longest) if lasted < longest else first
        self._delays[name] = delay
        self._print(f"{name} {end}. It starts again in {delay:g} s.")
        return not self._stopping.wait(delay)

    def _announce(self, on_start: Callable[[threading.Event], str | None], later: Collection[str]) -> None:
        text = on_start(self._stopping) or ""
        self._write(text)
        began = time.monotonic()
        self._ready.set()
        self._reasons.put(list(later))
        silent, longest = _REPEAT_SECONDS
        while later and not self._stopping.wait(silent / 5):
            at = time.monotonic()
            if (self._relayed_at > began and at - self._relayed_at > silent) or at - began > longest:
                self._write(text)
                return

    def _stop(self, reason: str | signal.Signals | Exception) -> str | None:
        """Ask the processes to end. Returns what failed; raises the error of a thread."""
        self._stopping.set()
        if isinstance(reason, Exception):
            raise reason
        if isinstance(reason, signal.Signals):
            failure = None
            self._print(f"{reason.name} received")
        else:
            failure = reason
            self._print(f"{failure}. Stopping everything else.")
        for name, process in self._running().items():
            self._print(f"sending SIGTERM to {name} (pid {process.pid})")
            # Not to its group: the process ends its own children in order.
            process.terminate()
        self._join(STOP_SECONDS)
        for name, process in self._running().items():
            self._print(f"sending SIGKILL to {name} (pid {process.pid})")
        return failure

    def _kill(self) -> None:
        for process in self._running().values():
            _kill_group(process)
        self._join(_KILL_SECONDS)

    def _running(self) -> dict[str, subprocess.Popen[bytes]]:
        return {name: process for name, process in self._processes.items() if process.returncode is None}

    def _join(self, seconds: float) -> None:
        """Wait until every process has ended and its output is printed, but no longer than `seconds`."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0, deadline - time.monotonic()))

    def _print(self, text: str, *, name: str = "system") -> None:
        prefix = f"{datetime.now().astimezone():%H:%M:%S} {name:{self._name_width}} | "
        if name in self._colours and sys.stdout.isatty():
            prefix = f"\033[{self._colours[name]}m{prefix}\033[0m"
        self._write("".join(f"{prefix}{visible(line.expandtabs())}\n" for line in text.splitlines()))

    def _write(self, text: str) -> None:
        with self._print_lock:
            sys.stdout.write(text)
            sys.stdout.flush()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
