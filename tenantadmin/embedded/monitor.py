"""Runs one server for as long as somebody needs it. A script: `python -I -S keeper.py … -- COMMAND`.

Everybody who needs the server holds a shared lock on the lease file. This process waits for an exclusive
one, which the kernel grants when the last holder is gone, be it by `exit` or by `kill -9`; then it stops the
server cleanly. It holds the server's own lock for its lifetime, so that nobody else starts a second one, and
writes into that file the server's pid and, at last, how it ended.

It also settles under which identity the server runs: PostgreSQL refuses to run as root. Uses the standard
library alone, and starts in a few milliseconds.
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
#: Seconds after the request to stop, and what follows then.
_ESCALATION = ((20.0, signal.SIGQUIT), (30.0, signal.SIGKILL))
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(signum: int, *, parent: int) -> None:
    """Have the kernel send `signum` to this process when the thread that forked it ends (Linux only).

    Where `parent`, the pid of the process that forked, has ended before, this one ends here.
    """
    if signum != signal.SIGKILL:
        # A handler of the parent's would take the signal, and be forgotten with it by `exec`.
        signal.signal(signum, signal.SIG_DFL)
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def describe_end(status: int) -> str:
    """Return how a process ended, from what `os.waitpid` says, as the rest of a sentence about it."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"was killed by signal {number} ({signal.Signals(number).name})"
    return f"ended with exit code {os.waitstatus_to_exitcode(status)}"


def enter_user_namespace(*, uid: int, gid: int) -> None:
    """Appear to ourselves as `uid`, while files and permissions outside stay those of our own user.

    Raises OSError where the kernel or the container forbids it.
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
    """Drop root's rights for good."""
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def exec_server(options: argparse.Namespace) -> NoReturn:
    """Take on the identity asked for and become the server."""
    try:
        if options.map_to:
            uid, gid = options.map_to
            enter_user_namespace(uid=uid, gid=gid)
        elif options.become:
            uid, gid = options.become
            become(uid=uid, gid=gid)
        if options.chdir:
            os.chdir(options.chdir)
        if options.lease:
            # After the change of identity, which clears it.
            die_with_parent(options.stop_signal, parent=options.keeper_pid)
        os.execv(options.command[0], options.command)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
    os._exit(126)


class Keeper:
    """The server as a child, and the reasons to stop it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._stopping = threading.Event()
        options.keeper_pid = os.getpid()
        self.server_pid = os.fork()
        if self.server_pid == 0:
            exec_server(options)

    def run(self) -> str:
        """Wait for the server's end and return how it came about."""
        for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(signum, lambda *_: self.stop())
        threading.Thread(target=self._stop_when_unneeded, daemon=True).start()
        _, status = os.waitpid(self.server_pid, 0)
        return "stopped" if self._stopping.is_set() else describe_end(status)

    def stop(self) -> None:
        """Ask the server to stop, and insist if it does not."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._send(self._options.stop_signal)
        for seconds, signum in _ESCALATION:
            timer = threading.Timer(seconds, self._send, args=(signum,))
            timer.daemon = True
            timer.start()

    def _stop_when_unneeded(self) -> None:
        fd = os.open(self._options.lease, os.O_RDWR | os.O_CLOEXEC)
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
    parser.add_argument("--lease", help="keep the server while this file is locked; without it, only exec")
    parser.add_argument("--lock-fd", type=int, help="the inherited descriptor of the server's own lock")
    parser.add_argument("--stop-signal", type=int, default=signal.SIGTERM)
    parser.add_argument("--map-to", type=_ids, metavar="UID:GID", help="in a user namespace")
    parser.add_argument("--become", type=_ids, metavar="UID:GID", help="as this user")
    parser.add_argument("--chdir")
    parser.add_argument("command", nargs="+")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    """Run as the script's options say."""
    options = _parse(arguments)
    if not options.lease:
        exec_server(options)
    os.set_inheritable(options.lock_fd, False)  # noqa: FBT003 - positional only
    keeper = Keeper(options)
    os.ftruncate(options.lock_fd, 0)
    os.write(options.lock_fd, f"{keeper.server_pid}\n".encode())
    os.write(options.lock_fd, keeper.run().encode())


if __name__ == "__main__":
    main(sys.argv[1:])
