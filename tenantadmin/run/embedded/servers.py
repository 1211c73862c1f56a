"""Start the servers when the first process needs them, and stop them after the last.

There are these locks. The kernel releases each when the process that holds it dies:

- `start`: held briefly, so that only one process at a time starts or stops servers.
- `in-use`: each process that needs the servers holds it, shared. The monitors wait for it to be free, then
  stop the servers (see `monitor`).
- `clients`: as `in-use`, but the monitors never take it. A process that gets it exclusively is the last one.
- one per server: its monitor holds it while the server runs. Pid files are not used, as they may be stale.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tenantadmin.run.embedded import postgresql, redis
from tenantadmin.run.embedded.layout import (
    MONITOR,
    EmbeddedError,
    FileLock,
    Layout,
    choose_identity,
    postgresql_program,
    redis_program,
)

_START_SECONDS = 60.0
_STOP_SECONDS = 40.0
_POLL_SECONDS = 0.02
#: Monitors that this process started, kept to reap monitors that end before it. Most end later.
_monitors: list[subprocess.Popen[bytes]] = []
#: A larger log is renamed to `<name>.log.1` at the next start, replacing that file.
_MAX_LOG_BYTES = 10 * 2**20


@dataclass(frozen=True)
class Server:
    """A running server."""

    name: str
    lock_path: Path
    #: Starts the server again after it has ended. Raises EmbeddedError.
    start_again: Callable[[], object] = field(default=lambda: None, compare=False)

    @property
    def pid(self) -> int:
        """The process id of the server itself."""
        return int(self._lines()[0])

    def wait(self) -> str:
        """Block until the server has ended. Return how it ended: `was killed by signal 9 (SIGKILL)`."""
        FileLock(self.lock_path).wait()
        try:
            return (self._lines()[1:] or ["ended together with its monitor"])[0]
        except FileNotFoundError:
            return "ended, and its directory was removed"

    def _lines(self) -> list[str]:
        """Return what the monitor wrote: the pid, and how the server ended if it has."""
        return self.lock_path.read_text().splitlines()


@dataclass(frozen=True)
class _ServerKind:
    """The differences between the two servers."""

    name: str
    slug: str
    find_program: Callable[[], Path]
    process_names: tuple[str, ...]
    stop_signal: int
    data: Path
    is_ready: Callable[[Layout], bool]


@dataclass(frozen=True)
class Needs:
    """The embedded servers that are needed."""

    database: bool
    redis: bool


def find_needs(environ: Mapping[str, str]) -> Needs:
    """Return which servers must be embedded, because `DATABASE_URL` or `REDIS_URL` is not set."""
    given = {name.removesuffix("_FILE") for name in environ}
    return Needs(database="DATABASE_URL" not in given, redis="REDIS_URL" not in given)


@contextlib.contextmanager
def running(
    var_dir: Path, *, database: bool = True, redis: bool = True, durable: bool = True
) -> Iterator[tuple[Server, ...]]:
    """Keep the servers of `var_dir` running inside the `with` block. Yield the requested ones.

    Several processes may be inside at once. The last one that leaves waits until the servers have stopped. If
    it is killed, they stop too. Without `durable`, data may be lost when the machine stops.

    Raises EmbeddedError.
    """
    layout = Layout(var_dir.absolute())
    if not (database or redis):
        yield ()
        return
    prepare_var_dir(layout.var_dir)
    in_use = FileLock(layout.lock("in-use"))
    clients = FileLock(layout.lock("clients"))
    kinds = [kind for kind, wanted in zip(_kinds(layout), (database, redis), strict=True) if wanted]
    for kind in kinds:
        # Raises EmbeddedError before anything else needs what is installed with it.
        kind.find_program()
    try:
        with _start_lock(layout):
            # While a monitor stops its server, it holds this lock exclusively.
            in_use.acquire(shared=True, timeout=_STOP_SECONDS)
            clients.acquire(shared=True, timeout=_STOP_SECONDS)
            servers = tuple(_ensure_started(kind, layout=layout, durable=durable) for kind in kinds)
        yield servers
    finally:
        with _start_lock(layout):
            in_use.release()
            clients.release()
            if clients.try_acquire():
                for kind in _kinds(layout):
                    _wait_for_end(layout.lock(kind.slug))
                clients.release()
                _monitors[:] = [monitor for monitor in _monitors if monitor.poll() is None]
                _remove_private_socket_dir(layout)


def prepare_var_dir(var_dir: Path) -> None:
    """Create the directories that the servers need. Raises EmbeddedError if they cannot be written."""
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
            "Make it a directory that you can write, or set VAR_DIR to another directory."
        ) from None


def _kinds(layout: Layout) -> tuple[_ServerKind, _ServerKind]:
    return (
        # SIGINT: PostgreSQL ends open sessions and shuts down cleanly.
        _ServerKind(
            "PostgreSQL",
            "postgresql",
            partial(postgresql_program, "postgres"),
            ("postgres",),
            signal.SIGINT,
            layout.postgresql_data,
            postgresql.is_ready,
        ),
        _ServerKind(
            "Redis",
            "redis",
            redis_program,
            # The second until release 0.2.
            ("valkey-server", "redis-server"),
            signal.SIGTERM,
            layout.redis_data,
            redis.is_ready,
        ),
    )


@contextlib.contextmanager
def _start_lock(layout: Layout) -> Iterator[None]:
    lock = FileLock(layout.lock("start"))
    lock.acquire(timeout=_START_SECONDS + _STOP_SECONDS)
    try:
        yield
    finally:
        lock.release()


def _ensure_started(kind: _ServerKind, *, layout: Layout, durable: bool) -> Server:
    lock = FileLock(layout.lock(kind.slug))
    if lock.try_acquire():
        try:
            _start(kind, layout=layout, lock=lock, durable=durable)
        finally:
            # The monitor has inherited the lock and still holds it.
            lock.release()
    _wait_until_ready(kind, layout=layout)

    def start_again() -> None:
        with _start_lock(layout):
            _ensure_started(kind, layout=layout, durable=durable)

    return Server(kind.name, layout.lock(kind.slug), start_again)


def _start(kind: _ServerKind, *, layout: Layout, lock: FileLock, durable: bool) -> None:
    _end_orphans(kind)
    _make_socket_dir(layout)
    options: tuple[str, ...] = ()
    environment = None
    if kind.slug == "postgresql":
        identity = choose_identity(layout.var_dir, program=kind.find_program())
        postgresql.prepare_data(layout, identity=identity, durable=durable)
        if layout.socket_dir.stat().st_uid != identity.uid:
            os.chown(layout.socket_dir, identity.uid, identity.gid)
        (layout.postgresql_data / "postmaster.pid").unlink(missing_ok=True)
        command = postgresql.server_command(layout, durable=durable)
        options, environment = identity.options, postgresql.ENVIRONMENT
    else:
        command = redis.server_command(layout, durable=durable)
    log_path = layout.log(kind.slug)
    if log_path.exists() and log_path.stat().st_size > _MAX_LOG_BYTES:
        log_path.replace(log_path.with_suffix(".log.1"))
    with log_path.open("ab") as log:
        monitor = subprocess.Popen(
            [
                *(*MONITOR, *options, "--chdir", str(kind.data)),
                *("--in-use-lock", str(layout.lock("in-use"))),
                *("--lock-fd", str(lock.fileno()), "--stop-signal", str(int(kind.stop_signal))),
                *("--", *command),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            pass_fds=(lock.fileno(),),
            # Ctrl-C in the terminal must reach only the command, which then stops the servers.
            start_new_session=True,
        )
    _monitors.append(monitor)


def _end_orphans(kind: _ServerKind) -> None:
    """End server processes of a killed monitor. Their working directory is the server's data directory."""
    import psutil  # noqa: PLC0415 - installed with the servers

    orphans = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd() == str(kind.data) and process.name().startswith(kind.process_names):
                orphans.append(process)
    for signum, seconds in ((kind.stop_signal, 10.0), (signal.SIGKILL, 5.0)):
        for process in orphans:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signum)
        _, orphans = psutil.wait_procs(orphans, timeout=seconds)


def _make_socket_dir(layout: Layout) -> None:
    if layout.socket_dir == layout.run_dir:
        return
    layout.socket_dir.mkdir(mode=0o700, exist_ok=True)
    status = layout.socket_dir.lstat()
    owners = {os.geteuid()}
    with contextlib.suppress(FileNotFoundError):
        owners.add(layout.postgresql_data.stat().st_uid)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in owners or status.st_mode & 0o077:
        raise EmbeddedError(
            f"{layout.socket_dir} is not a private directory of this user. Remove it, and try again."
        )


def _remove_private_socket_dir(layout: Layout) -> None:
    if layout.socket_dir != layout.run_dir and layout.socket_dir.exists():
        for path in layout.socket_dir.iterdir():
            path.unlink(missing_ok=True)
        layout.socket_dir.rmdir()


def _wait_until_ready(kind: _ServerKind, *, layout: Layout) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not kind.is_ready(layout):
        has_ended = _is_free(layout.lock(kind.slug))
        if has_ended or time.monotonic() > deadline:
            problem = "did not start" if has_ended else "has not answered for a minute"
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
