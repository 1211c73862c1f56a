"""Runs the processes of the service until a process ends or a signal comes, then stops the others.

Why with threads, and without a library: docs/decisions/0004-web-server-and-supervisor.md
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from tenantadmin.lib.terminal import visible
from tenantadmin.run.embedded.monitor import describe_end, die_with_parent
from tenantadmin.run.serve import reaper, web

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import IO

    from tenantadmin.run.embedded import Server

#: How long the processes have to end after SIGTERM. The web server takes longest: it finishes its requests.
STOP_SECONDS = web.STOP_SECONDS + 2.0
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
        #: Reasons to stop: a failure as a sentence, a signal, or an error in a thread. The first one counts.
        #: None: `on_start` has returned.
        self._reasons: queue.SimpleQueue[str | signal.Signals | Exception | None] = queue.SimpleQueue()

    def run(
        self,
        *,
        servers: Sequence[Server],
        on_start: Callable[[threading.Event], str | None],
        later: Collection[str] = (),
    ) -> str | None:
        """Run until a process ends, one of `servers` ends, or SIGINT or SIGTERM comes.

        `on_start` runs beside the processes and returns a text to print. It gets an event that is set when
        they are stopped. Then the processes start that `later` names.

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
            self._start_all([name for name in self._commands if name not in later], reaping.stdin)
            for server in servers:
                self._print(f"{server.name} runs (pid={server.pid})")
                self._in_thread(self._watch_server, server)
            self._in_thread(self._announce, on_start)
            reason = self._reasons.get()
            if reason is None:
                self._start_all(later, reaping.stdin)
                reason = self._reasons.get()
            return self._stop(reason)

    def _start_all(self, names: Collection[str], reaper: IO[str] | None) -> None:
        started = {name: self._start(name, self._commands[name]) for name in names}
        for name, process in started.items():
            # The service works without its reaper, if that was killed.
            with contextlib.suppress(BrokenPipeError):
                print(process.pid, file=reaper)
            self._threads.append(self._in_thread(self._relay, name, process))
            self._threads.append(self._in_thread(self._watch, name, process))

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
            self._print(line.decode(errors="replace"), name=name)

    def _watch(self, name: str, process: subprocess.Popen[bytes]) -> None:
        code = process.wait()
        # The workers of a killed web server would continue, and keep its output open.
        _kill_group(process)
        self._print(f"{name} stopped (rc={code})")
        # The status word of a wait.
        self._reasons.put(f"{name} {describe_end(-code if code < 0 else code << 8)}")

    def _watch_server(self, server: Server) -> None:
        self._reasons.put(f"{server.name} {server.wait()}")

    def _announce(self, on_start: Callable[[threading.Event], str | None]) -> None:
        self._write(on_start(self._stopping) or "")
        self._reasons.put(None)

    def _stop(self, reason: str | signal.Signals | Exception | None) -> str | None:
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
