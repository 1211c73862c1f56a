"""Where the development servers keep their files, and the addresses that follow from it.

Everything here is computed from the path of the `var` directory alone, so that settings can name the
servers before anything has started them.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

DATABASE = "tenantadmin"
USER = "tenantadmin"
#: PostgreSQL names its socket after a port, although it listens on none.
PORT = 5432
#: The shortest limit on a socket's path among the systems we run on (macOS: 104 bytes with the final NUL).
_SOCKET_PATH_LIMIT = 103


@dataclass(frozen=True)
class Endpoints:
    """The addresses of the two servers, in the form that `DATABASE_URL` and `REDIS_URL` take."""

    database_url: str
    redis_url: str


@dataclass(frozen=True)
class Layout:
    """The files under one `var` directory."""

    var_dir: Path

    @property
    def run_dir(self) -> Path:
        """Lock files, and the sockets where their path is short enough."""
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
        """The run directory, or a private one under `/tmp` where a socket's path would be too long.

        Not `TMPDIR`: two processes with different ones must find the same server.
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
    """Return the addresses of the servers that belong to `var_dir`. Starts and creates nothing."""
    layout = Layout(var_dir.absolute())
    # The form that django-environ reads: a path, of which the last part is the database.
    return Endpoints(
        database_url=f"postgres://{USER}@/{quote(str(layout.socket_dir))}/{DATABASE}",
        redis_url=f"unix://{quote(str(layout.redis_socket))}?db=0",
    )


def celery_broker_url(redis_url: str) -> str:
    """Return `redis_url` as Celery spells it: a Unix socket is `redis+socket://`, the rest is the same."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    database = dict(pair.partition("=")[::2] for pair in parts.query.split("&")).get("db", "0")
    return f"redis+socket://{parts.path}?virtual_host={database}"
