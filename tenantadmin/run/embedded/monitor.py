"""Run one server while any process needs it. A script: `python -I -S monitor.py … -- COMMAND`.

Each process that needs the server holds a shared lock on one file. The monitor waits for an exclusive lock
on it. The kernel grants that when the last process has released its lock or has died, even by `kill -9`. Then
the monitor stops the server. For its whole life it holds the server's own lock, so that no second server
starts. It writes the server's pid into that lock file, and in the end how the server ended.

The monitor also changes the user that runs the server, as PostgreSQL refuses to run as root. It uses only the
standard library, and starts in a few milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import os
import signal
import sys
import threading
from typing import NoReturn

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1
#: Further signals if the server does not stop: seconds after the first signal, and the signal.
_ESCALATION = ((20.0, signal.SIGQUIT), (30.0, signal.SIGKILL))
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(signum: int, *, parent: int) -> None:
    """Let the kernel send `signum` to this process when the thread that forked it ends (Linux only).

    If the process `parent`, which forked this one, has already ended, exit now.
    """
    if signum != signal.SIGKILL:
        # A handler inherited from the parent could catch a signal that comes before `exec`; it would be lost.
        signal.signal(signum, signal.SIG_DFL)
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def describe_end(status: int) -> str:
    """Return how a process ended, as the end of a sentence. `status` comes from `os.waitpid`."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"was killed by signal {number} ({signal.Signals(number).name})"
    return f"ended with exit code {os.waitstatus_to_exitcode(status)}"


def enter_user_namespace(*, uid: int, gid: int) -> None:
    """Enter a user namespace in which this process has the id `uid`. Outside, its user does not change.

    Raises OSError if the kernel or the container forbids it.
    """
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWUSER) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {outer_uid} 1"),
        ("gid_map", f"{gid} {outer_gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - pathlib is slow to import
            file.write(text)


def become(*, uid: int, gid: int) -> None:
    """Change to this user and group. There is no way back to root."""
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def exec_server(options: argparse.Namespace) -> NoReturn:
    """Change to the user in the options, and replace this process by the server."""
    try:
        if options.map_to:
            uid, gid = options.map_to
            enter_user_namespace(uid=uid, gid=gid)
        elif options.become:
            uid, gid = options.become
            become(uid=uid, gid=gid)
        if options.chdir:
            os.chdir(options.chdir)
        if options.in_use_lock:
            # This must follow the change of the user, which clears the setting.
            die_with_parent(options.stop_signal, parent=options.monitor_pid)
        os.execv(options.command[0], options.command)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
    os._exit(126)


class Monitor:
    """Runs the server as a child process, and stops it when no process needs it or a signal comes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._stopping = threading.Event()
        options.monitor_pid = os.getpid()
        self.server_pid = os.fork()
        if self.server_pid == 0:
            exec_server(options)

    def run(self) -> str:
        """Wait until the server ends. Return how it ended."""
        for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(signum, lambda *_: self.stop())
        threading.Thread(target=self._stop_when_unneeded, daemon=True).start()
        _, status = os.waitpid(self.server_pid, 0)
        return "stopped" if self._stopping.is_set() else describe_end(status)

    def stop(self) -> None:
        """Send the stop signal to the server, and stronger signals if it does not stop."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._send(self._options.stop_signal)
        for seconds, signum in _ESCALATION:
            timer = threading.Timer(seconds, self._send, args=(signum,))
            timer.daemon = True
            timer.start()

    def _stop_when_unneeded(self) -> None:
        fd = os.open(self._options.in_use_lock, os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(fd, fcntl.LOCK_EX)
        self.stop()

    def _send(self, signum: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.server_pid, signum)


def _ids(text: str) -> tuple[int, int]:
    uid, _, gid = text.partition(":")
    return int(uid), int(gid)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--in-use-lock", help="stop the server when no process locks this file; if absent, only run COMMAND"
    )
    parser.add_argument("--lock-fd", type=int, help="inherited descriptor of the server's own lock")
    parser.add_argument("--stop-signal", type=int, default=signal.SIGTERM)
    parser.add_argument(
        "--map-to", type=_ids, metavar="UID:GID", help="run with these ids in a user namespace"
    )
    parser.add_argument("--become", type=_ids, metavar="UID:GID", help="run as this user and group")
    parser.add_argument("--chdir")
    parser.add_argument("command", nargs="+")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    """Run the script with these arguments."""
    options = _parse(arguments)
    if not options.in_use_lock:
        exec_server(options)
    os.set_inheritable(options.lock_fd, False)  # noqa: FBT003 - positional only
    monitor = Monitor(options)
    os.ftruncate(options.lock_fd, 0)
    os.write(options.lock_fd, f"{monitor.server_pid}\n".encode())
    os.write(options.lock_fd, monitor.run().encode())


if __name__ == "__main__":
    main(sys.argv[1:])
