"""Readiness: can the process answer requests, and which servers does it reach.

Without Redis or the object store most requests are still answered, and no other process would do better. So
only the database decides whether the process is ready; the others are a status, and a metric for an alert.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar, Final

import psycopg
import redis
from django.conf import settings
from django.db import connection

from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.probes import Probes
from tenantadmin.lib.objectstore import StoreError, default_store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

logger = logging.getLogger(__name__)

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


class Readiness(Probes[str, bool]):
    """Runs the checks of the servers. One that does not end within `DEADLINE_SECONDS` has failed."""

    def __init__(self, checks: Mapping[str, Callable[[], bool]]) -> None:
        super().__init__(checks, deadline=DEADLINE_SECONDS)

    def measure(self) -> dict[str, float | None]:
        """Return how many seconds each check took, or None if it failed, by the name of the server."""
        return {
            server: answer.seconds if answer is not None and answer.value else None
            for server, answer in self.ask().items()
        }

    def describe(self) -> dict[str, Any]:
        """Return ``{status: "ok"}``, or ``{status: "degraded", unreachable: [server]}``.

        Raises:
            DatabaseUnreachable: the process is not ready.
        """
        unreachable = [server for server, seconds in self.measure().items() if seconds is None]
        if DATABASE in unreachable:
            raise DatabaseUnreachable
        return {"status": "degraded", "unreachable": unreachable} if unreachable else {"status": "ok"}


def is_database_reachable() -> bool:
    """Return True if a new connection to the database can run a query. Uses `TIMEOUT_SECONDS`."""
    parameters: dict[str, Any] = {
        **connection.get_connection_params(),
        "connect_timeout": TIMEOUT_SECONDS,
        "tcp_user_timeout": TIMEOUT_SECONDS * 1000,
    }
    try:
        with psycopg.connect(**parameters) as new_connection:
            new_connection.execute(f"SET statement_timeout = {TIMEOUT_SECONDS * 1000}")
            new_connection.execute("SELECT 1")
    except psycopg.Error as error:
        logger.warning("The database does not answer: %s", error)
        return False
    return True


def is_redis_reachable() -> bool:
    """Return True if Redis answers on a new connection. Uses `TIMEOUT_SECONDS`."""
    limits = {"socket_timeout": TIMEOUT_SECONDS, "socket_connect_timeout": TIMEOUT_SECONDS}
    try:
        with redis.Redis.from_url(settings.REDIS_URL, **limits) as client:
            return bool(client.ping())
    except redis.RedisError as error:
        logger.warning("Redis does not answer: %s", error)
        return False


def is_store_reachable() -> bool:
    """Return True if the object store answers. Uses `TIMEOUT_SECONDS`."""
    try:
        default_store().check_reachable(seconds=TIMEOUT_SECONDS)
    except StoreError as error:
        logger.warning("The object store does not answer: %s", error)
        return False
    return True


readiness = Readiness(
    {
        DATABASE: is_database_reachable,
        REDIS: is_redis_reachable,
        OBJECT_STORE: is_store_reachable,
    }
)
