"""Readiness: can the process answer requests, and which servers does it reach.

Without Redis or the object store most requests are still answered, and no other process would do better. So
only the database decides whether the process is ready; the others are a status, and a metric for an alert.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import psycopg
import redis
from django.conf import settings
from django.db import connection

from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.probes import Probes
from tenantadmin.lib.objectstore import default_store

#: After this time without an answer, a server counts as unreachable.
TIMEOUT_SECONDS: Final = 2
#: A check that takes longer has failed, for whatever reason.
DEADLINE_SECONDS: Final = 4.0

#: The servers, by their names in answers and metrics.
DATABASE: Final = "database"
REDIS: Final = "redis"
OBJECT_STORE: Final = "object_store"


class DatabaseUnreachable(ApiError):
    status: ClassVar[int] = 503
    code: ClassVar[str] = "database_unreachable"
    message: ClassVar[str] = "The database cannot be reached."


class ObjectStoreUnreachable(ApiError):
    status: ClassVar[int] = 503
    code: ClassVar[str] = "object_store_unreachable"
    message: ClassVar[str] = "The object store cannot be reached."


class Readiness(Probes[str, object]):
    """Asks the servers. One that raises, or does not answer within `DEADLINE_SECONDS`, is unreachable."""

    def __init__(self, checks: Mapping[str, Callable[[], object]]) -> None:
        super().__init__(checks, deadline=DEADLINE_SECONDS)

    def measure(self) -> dict[str, float | None]:
        """Return after how many seconds each server answered, or None if it is unreachable, by its name."""
        return {server: None if answer is None else answer.seconds for server, answer in self.ask().items()}

    def describe(self) -> dict[str, Any]:
        """Return ``{status: "ok"}``, or ``{status: "degraded", unreachable: [server]}``.

        Raises:
            DatabaseUnreachable: the process is not ready.
        """
        unreachable = [server for server, seconds in self.measure().items() if seconds is None]
        if DATABASE in unreachable:
            raise DatabaseUnreachable
        return {"status": "degraded", "unreachable": unreachable} if unreachable else {"status": "ok"}


def ask_database(*, seconds: int = TIMEOUT_SECONDS) -> None:
    """Run a query on a new connection to the database.

    Raises:
        psycopg.Error: it cannot be reached, or does not answer in time.
    """
    limits: Any = {"connect_timeout": seconds, "tcp_user_timeout": seconds * 1000}
    with psycopg.connect(**{**connection.get_connection_params(), **limits}) as new:
        new.execute(f"SET statement_timeout = {seconds * 1000}")
        new.execute("SELECT 1")


def ask_redis(*, seconds: int = TIMEOUT_SECONDS) -> None:
    """Ask Redis on a new connection.

    Raises:
        redis.RedisError: it cannot be reached, or does not answer in time.
    """
    limits: Any = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    with redis.Redis.from_url(settings.REDIS_URL, **limits) as client:
        client.ping()


def ask_store(*, seconds: int = TIMEOUT_SECONDS) -> None:
    """Ask the object store.

    Raises:
        StoreError: it cannot be reached, or does not answer in time.
    """
    default_store().check_reachable(seconds=seconds)


readiness = Readiness({DATABASE: ask_database, REDIS: ask_redis, OBJECT_STORE: ask_store})
