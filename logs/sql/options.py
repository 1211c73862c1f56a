"""What an operator may set of SQL over the log, for the service and for an SQL service of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from logs.sql.protocol import Limits

if TYPE_CHECKING:
    import environ


#: The shortest secret that is taken, in characters.
_SECRET_LENGTH: Final = 32


class Misconfigured(Exception):
    """Queries cannot run: a sentence for a person, with the cure."""


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """How queries run, and where.

    ``slots`` query processes at once in one service process, ``slots_per_tenant`` of them of one tenant,
    ``queue`` more queries may wait, ``warm`` processes are kept ready. ``cache_bytes`` bounds the copies of
    files of a remote store. ``service_url`` names an SQL service that runs the queries instead; it and its
    callers share ``service_secret``.
    """

    limits: Limits
    slots: int
    slots_per_tenant: int
    queue: int
    warm: int
    cache_bytes: int
    service_url: str
    service_secret: str


def read_options(env: environ.Env) -> SqlOptions:
    """Return the options that the environment sets. Each is described in ``docs/configuration.md``."""
    return SqlOptions(
        limits=Limits(
            seconds=env.float("SQL_TIMEOUT_SECONDS", default=15.0),
            max_rows=env.int("SQL_MAX_ROWS", default=10_000),
            max_bytes=env.int("SQL_MAX_BYTES", default=32 << 20),
            memory_bytes=env.int("SQL_MEMORY_BYTES", default=1 << 30),
            threads=env.int("SQL_THREADS", default=2),
        ),
        slots=env.int("SQL_SLOTS", default=12),
        slots_per_tenant=env.int("SQL_SLOTS_PER_TENANT", default=8),
        queue=env.int("SQL_QUEUE", default=12),
        warm=env.int("SQL_WARM_PROCESSES", default=4),
        cache_bytes=env.int("SQL_CACHE_BYTES", default=20 << 30),
        service_url=env.str("SQL_SERVICE_URL", default="").rstrip("/"),
        service_secret=env.str("SQL_SERVICE_SECRET", default=""),
    )


def check_secret(options: SqlOptions) -> None:
    """Raise `Misconfigured` unless the secret is one."""
    if len(options.service_secret) < _SECRET_LENGTH:
        raise Misconfigured(
            f"SQL_SERVICE_SECRET is missing or shorter than {_SECRET_LENGTH} characters."
            " Set the same random text for the SQL service and the web processes (openssl rand -hex 32)."
        )
