"""Runs the processes of the service until one of them ends or we are told to stop; then stops them all.

honcho does the work. Added here: what honcho does not watch (PostgreSQL, Redis, and children that outlive
a killed parent, which a `reaper` ends), and a sentence about what went wrong.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from honcho.manager import Manager
from honcho.printer import Printer
from honcho.process import Process

from tenantadmin.embedded.keeper import describe_end, die_with_parent
from tenantadmin.serve import reaper
from tenantadmin.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenantadmin.embedded import Server


class _Child(subprocess.Popen[bytes]):
    """A process in a group of its own, of which nobody outlives the first.

    A web server's workers hold the pipe that honcho reads; left behind by a `kill -9`, they would hide it.
    """

    def __init__(self, command: str, *, env: Mapping[str, str], cwd: str | None) -> None:
        super().__init__(  # noqa: S604 - the commands are ours
            f"exec {command}",
            shell=True,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Safe: honcho starts every child from a process with a single thread.
            preexec_fn=partial(die_with_parent, signal.SIGTERM, parent=os.getpid()),
        )
        threading.Thread(target=self._end_group, daemon=True).start()

    def _end_group(self) -> None:
        self.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


class _WatchedProcess(Process):  # type: ignore[misc] # honcho has no types
    """honcho's process, which ends when the supervisor is killed, and its child with it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._child_ctor = _Child
        self._supervisor = os.getpid()

    def run(self, *args: Any, **kwargs: Any) -> None:
        die_with_parent(signal.SIGKILL, parent=self._supervisor)
        super().run(*args, **kwargs)


class _Printer(Printer):  # type: ignore[misc] # honcho has no types
    """honcho's printer for a terminal that no line of a log drives."""

    def write(self, message: Any) -> None:
        data = message.data
        text = data.decode(errors="replace") if isinstance(data, bytes) else data
        lines = [f"{visible(line.expandtabs())}\n" for line in text.splitlines()]
        super().write(message._replace(data="".join(lines)))


class _Signals:
    """How honcho stops a process: by asking its first one, which ends its own children in order."""

    def terminate(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    def kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


class Supervisor(Manager):  # type: ignore[misc] # honcho has no types
    """A honcho manager that also watches `servers`, and knows why it stopped.

    `on_start` runs in a thread of its own once the processes have been started.
    """

    #: What ended unasked, and how: `worker was killed by signal 9 (SIGKILL)`.
    failure: str | None = None

    def __init__(self, *, servers: Sequence[Server], on_start: Callable[[threading.Event], None]) -> None:
        super().__init__(printer=_Printer(sys.stdout))
        self._process_ctor = _WatchedProcess
        self._procmgr = _Signals()
        self._servers = servers
        self._on_start = on_start
        self._stopping = threading.Event()
        self._reason_lock = threading.RLock()
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__],
            stdin=subprocess.PIPE,
            start_new_session=True,
            text=True,
            bufsize=1,
        )

    def run(self) -> str | None:
        """Run until the end; return what failed, or None if we were told to stop."""
        previous = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)}
        try:
            self.loop()
        except BaseException:
            self._abandon()
            raise
        finally:
            for signum, handler in previous.items():
                signal.signal(signum, handler)
            with contextlib.suppress(BrokenPipeError):
                self._reaper.communicate()
        return self.failure

    def terminate(self) -> None:
        """Stop everything; the first call settles why."""
        with self._reason_lock:
            first = not self._stopping.is_set()
            self._stopping.set()
            # honcho sets the return code before it calls this for a signal that we received.
            if first and self.failure is None and not self._told_to_stop():
                self.failure = self._ended_process()
        if first and self.failure:
            self._system_print(f"{self.failure}. Stopping everything else.\n")
        if self._all_started():
            super().terminate()

    def _abandon(self) -> None:
        """End everything where nobody listens to honcho's processes any more.

        They hold the reaper's input, and Python waits for them when it exits.
        """
        self._stopping.set()
        for state in self._processes.values():
            if process := state.get("process"):
                process.kill()

    def _start(self) -> None:
        super()._start()
        self._await_start()
        if self._stopping.is_set():
            super().terminate()
        # Threads only from here on: honcho has forked.
        for server in self._servers:
            self._system_print(f"{server.name} runs (pid={server.pid})\n")
            threading.Thread(target=self._watch, args=(server,), daemon=True).start()
        threading.Thread(target=self._on_start, args=(self._stopping,), daemon=True).start()

    def _await_start(self) -> None:
        """Learn every pid before anything else happens: honcho cannot stop what has not reported yet."""
        other = []
        while not self._all_started():
            message = self.events.get()
            if message.type == "start":
                self._processes[message.name]["pid"] = message.data["pid"]
                self._system_print(f"{message.name} started (pid={message.data['pid']})\n")
                self._tell_reaper(message.data["pid"])
            else:
                other.append(message)
        for message in other:
            self.events.put(message)

    def _tell_reaper(self, pid: int) -> None:
        # Somebody may have killed it; the service can do without.
        with contextlib.suppress(BrokenPipeError):
            print(pid, file=self._reaper.stdin)

    def _watch(self, server: Server) -> None:
        end = server.wait()
        with self._reason_lock:
            if self._stopping.is_set():
                return
            self.failure = f"{server.name} {end}"
        self.terminate()

    def _told_to_stop(self) -> bool:
        return self.returncode is not None and not self._any_stopped()

    def _ended_process(self) -> str | None:
        for name, state in self._processes.items():
            if (code := state.get("returncode")) is not None:
                # The status word of a wait, which describe_end takes apart.
                return f"{name} {describe_end(-code if code < 0 else code << 8)}"
        return None


def run(
    commands: Mapping[str, str],
    *,
    servers: Sequence[Server],
    env: Mapping[str, str],
    on_start: Callable[[threading.Event], None],
) -> str | None:
    """Run `commands` (name to shell command) until one ends, a server ends, or SIGINT or SIGTERM comes.

    Returns what failed as a sentence without its full stop, None when told to stop.
    """
    # Python 3.14 forks from a process of its own unless told otherwise.
    multiprocessing.set_start_method("fork", force=True)
    supervisor = Supervisor(servers=servers, on_start=on_start)
    for name, command in commands.items():
        supervisor.add_process(name, command, env=dict(env))
    sys.stdout.flush()
    return supervisor.run()
