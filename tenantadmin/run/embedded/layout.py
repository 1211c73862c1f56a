"""Paths of the development servers' files, and their addresses.

Everything is computed from the path of the `var` directory, so the settings know the addresses before the
servers run.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

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
