"""Makes sure that the servers run, for as long as anybody needs them.

Three kinds of locks, all released by the kernel when their holder dies:

- `start`: held for moments, so that one process at a time comes or goes.
- `lease`, shared: held by everybody who needs the servers. Their keepers wait for it to be free, then stop
  them (see `keeper`). `holders` is the same without the keepers: who gets it is the last to leave.
- one per server, held by its keeper: while it is held, the server runs. No pid file is ever believed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from tenantadmin.embedded import postgresql, redis
from tenantadmin.embedded.binaries import postgresql_program
from tenantadmin.embedded.errors import EmbeddedError
from tenantadmin.embedded.identity import KEEPER, choose_identity
from tenantadmin.embedded.layout import Endpoints, Layout, endpoints
from tenantadmin.embedded.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_START_SECONDS = 60.0
_STOP_SECONDS = 40.0
_POLL_SECONDS = 0.02
#: Our children, kept for the day we reap them; most end after us.
_keepers: list[subprocess.Popen[bytes]] = []
#: A log that has grown beyond this is set aside at the next start, once.
_LOG_BYTES = 10 * 2**20


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    name: str
    lock_path: Path

    @property
    def pid(self) -> int:
        """The process id of the server itself."""
        return int(self._record()[0])

    def wait(self) -> str:
        """Block until the server has ended; return how: `was killed by signal 9 (SIGKILL)`."""
        FileLock(self.lock_path).wait()
        try:
            return (self._record()[1:] or ["ended together with its keeper"])[0]
        except FileNotFoundError:
            return "ended, its directory having been removed"

    def _record(self) -> list[str]:
        """What its keeper wrote: the pid, and the end once it has come."""
        return self.lock_path.read_text().splitlines()


@dataclass(frozen=True)
class _Kind:
    """What the two servers differ in."""

    name: str
    slug: str
    stop_signal: int
    data: Path
    answers: Callable[[Layout], bool]


@dataclass(frozen=True)
class Needs:
    """Which servers no variable of the environment replaces."""

    database: bool
    redis: bool


def unconfigured(environ: Mapping[str, str]) -> Needs:
    """Return which servers have to be embedded, `DATABASE_URL` and `REDIS_URL` being absent."""
    return Needs(database="DATABASE_URL" not in environ, redis="REDIS_URL" not in environ)


@contextlib.contextmanager
def running(
    var_dir: Path, *, database: bool = True, redis: bool = True, durable: bool = True
) -> Iterator[tuple[Server, ...]]:
    """Keep the servers of `var_dir` running inside the `with` block; yield those that were asked for.

    Any number of processes may be inside. The servers stop when the last one has left, and the last one
    waits for that; killed holders count as gone. With `durable` off, data are lost when the machine stops.

    Raises EmbeddedError with a sentence for a person.
    """
    layout = Layout(var_dir.absolute())
    if not (database or redis):
        yield ()
        return
    prepare_var_dir(layout.var_dir)
    lease = FileLock(layout.lock("lease"))
    holders = FileLock(layout.lock("holders"))
    kinds = [kind for kind, wanted in zip(_kinds(layout), (database, redis), strict=True) if wanted]
    try:
        with _coming_or_going(layout):
            # A keeper that is stopping its server holds the lease alone until it is done.
            lease.acquire(shared=True, timeout=_STOP_SECONDS)
            holders.acquire(shared=True, timeout=_STOP_SECONDS)
            servers = tuple(_ensure_started(kind, layout=layout, durable=durable) for kind in kinds)
        yield servers
    finally:
        with _coming_or_going(layout):
            lease.release()
            holders.release()
            if holders.try_acquire():
                for kind in _kinds(layout):
                    _wait_for_end(layout.lock(kind.slug))
                holders.release()
                _keepers[:] = [keeper for keeper in _keepers if keeper.poll() is None]
                _remove_private_socket_dir(layout)


class RunningForTests:
    """The servers of a test run, whose data nobody keeps."""

    def __init__(self, var_dir: Path) -> None:
        self.endpoints: Endpoints = endpoints(var_dir)
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(running(var_dir, durable=False))

    def stop(self) -> None:
        """Stop the servers; doing so again changes nothing."""
        self._stack.close()


def start_for_tests(var_dir: Path) -> RunningForTests:
    """Start both servers under `var_dir` without durability: the data are lost when the machine stops."""
    return RunningForTests(var_dir)


def prepare_var_dir(var_dir: Path) -> None:
    """Make the directories that everything else needs. Raises EmbeddedError where that is not possible."""
    layout = Layout(var_dir.absolute())
    try:
        for path in (layout.var_dir, layout.run_dir, layout.log_dir, layout.redis_data):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(path, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied", str(path))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise EmbeddedError(
            f"{error.filename or var_dir} cannot be written ({reason}). "
            "Make it a directory of yours, or set VAR_DIR to another place."
        ) from None


def _kinds(layout: Layout) -> tuple[_Kind, _Kind]:
    return (
        # SIGINT: PostgreSQL ends open sessions and shuts down cleanly.
        _Kind("PostgreSQL", "postgresql", signal.SIGINT, layout.postgresql_data, postgresql.answers),
        _Kind("Redis", "redis", signal.SIGTERM, layout.redis_data, redis.answers),
    )


@contextlib.contextmanager
def _coming_or_going(layout: Layout) -> Iterator[None]:
    lock = FileLock(layout.lock("start"))
    lock.acquire(timeout=_START_SECONDS + _STOP_SECONDS)
    try:
        yield
    finally:
        lock.release()


def _ensure_started(kind: _Kind, *, layout: Layout, durable: bool) -> Server:
    lock = FileLock(layout.lock(kind.slug))
    if lock.try_acquire():
        try:
            _start(kind, layout=layout, lock=lock, durable=durable)
        finally:
            # The keeper holds it from here on.
            lock.release()
    server = Server(kind.name, layout.lock(kind.slug))
    _wait_until_it_answers(kind, layout=layout)
    return server


def _start(kind: _Kind, *, layout: Layout, lock: FileLock, durable: bool) -> None:
    _end_leftovers(kind)
    _make_socket_dir(layout)
    options: tuple[str, ...] = ()
    environment = None
    if kind.slug == "postgresql":
        identity = choose_identity(layout.var_dir, program=postgresql_program("postgres"))
        postgresql.prepare_data(layout, identity=identity, durable=durable)
        if layout.socket_dir.stat().st_uid != identity.uid:
            os.chown(layout.socket_dir, identity.uid, identity.gid)
        (layout.postgresql_data / "postmaster.pid").unlink(missing_ok=True)
        command = postgresql.server_command(layout, durable=durable)
        options, environment = identity.options, postgresql.ENVIRONMENT
    else:
        command = redis.server_command(layout, durable=durable)
    log_path = layout.log(kind.slug)
    if log_path.exists() and log_path.stat().st_size > _LOG_BYTES:
        log_path.replace(log_path.with_suffix(".log.1"))
    with log_path.open("ab") as log:
        keeper = subprocess.Popen(
            [
                *(*KEEPER, *options, "--chdir", str(kind.data), "--lease", str(layout.lock("lease"))),
                *("--lock-fd", str(lock.fileno()), "--stop-signal", str(int(kind.stop_signal))),
                *("--", *command),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            pass_fds=(lock.fileno(),),
            # Ctrl-C in the terminal is for the command, which then leaves in order.
            start_new_session=True,
        )
    _keepers.append(keeper)


def _end_leftovers(kind: _Kind) -> None:
    """End what a killed keeper left behind: whatever works in the server's data directory."""
    leftovers = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd() == str(kind.data) and process.name().startswith(("postgres", "redis-server")):
                leftovers.append(process)
    for signum, seconds in ((kind.stop_signal, 10.0), (signal.SIGKILL, 5.0)):
        for process in leftovers:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signum)
        _, leftovers = psutil.wait_procs(leftovers, timeout=seconds)


def _make_socket_dir(layout: Layout) -> None:
    if layout.socket_dir == layout.run_dir:
        return
    layout.socket_dir.mkdir(mode=0o700, exist_ok=True)
    status = layout.socket_dir.lstat()
    owners = {os.geteuid()}
    with contextlib.suppress(FileNotFoundError):
        owners.add(layout.postgresql_data.stat().st_uid)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in owners or status.st_mode & 0o077:
        raise EmbeddedError(f"{layout.socket_dir} is open to other users. Remove it, and try again.")


def _remove_private_socket_dir(layout: Layout) -> None:
    if layout.socket_dir != layout.run_dir and layout.socket_dir.exists():
        for path in layout.socket_dir.iterdir():
            path.unlink(missing_ok=True)
        layout.socket_dir.rmdir()


def _wait_until_it_answers(kind: _Kind, *, layout: Layout) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not kind.answers(layout):
        ended = _is_free(layout.lock(kind.slug))
        if ended or time.monotonic() > deadline:
            problem = "did not start" if ended else "has not answered for a minute"
            raise EmbeddedError(f"{kind.name} {problem}: {_last_line(layout.log(kind.slug))}")
        time.sleep(_POLL_SECONDS)


def _wait_for_end(lock_path: Path) -> None:
    lock = FileLock(lock_path)
    lock.acquire(timeout=_STOP_SECONDS)
    lock.release()


def _is_free(lock_path: Path) -> bool:
    lock = FileLock(lock_path)
    try:
        return lock.try_acquire()
    finally:
        lock.release()


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines() or ["it wrote nothing"]
    fatal = [line for line in lines[-20:] if "FATAL" in line]
    return f"{(fatal or lines)[-1]} (more in {path})"
