"""Readiness: can the process reach the database, Redis and the object store."""

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


class DatabaseUnreachable(ApiError):
    status: ClassVar[int] = 503
    code: ClassVar[str] = "database_unreachable"
    message: ClassVar[str] = "The database cannot be reached."


class RedisUnreachable(ApiError):
    status: ClassVar[int] = 503
    code: ClassVar[str] = "redis_unreachable"
    message: ClassVar[str] = "Redis cannot be reached."


class ObjectStoreUnreachable(ApiError):
    status: ClassVar[int] = 503
    code: ClassVar[str] = "object_store_unreachable"
    message: ClassVar[str] = "The object store cannot be reached."


class Readiness(Probes[type[ApiError], bool]):
    """Runs the checks. One that does not end within `DEADLINE_SECONDS` has failed."""

    def __init__(self, checks: Mapping[type[ApiError], Callable[[], bool]]) -> None:
        super().__init__(checks, deadline=DEADLINE_SECONDS)

    def measure(self) -> dict[type[ApiError], float | None]:
        """Return how many seconds each check took, or None if it failed, by the error of its failure."""
        return {
            error: answer.seconds if answer is not None and answer.value else None
            for error, answer in self.ask().items()
        }

    def find_failure(self) -> type[ApiError] | None:
        """Return the error of the first check that fails, or None if the process is ready."""
        return next((error for error, seconds in self.measure().items() if seconds is None), None)


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
        logger.warning("Not ready: %s", error)
        return False
    return True


def is_redis_reachable() -> bool:
    """Return True if Redis answers on a new connection. Uses `TIMEOUT_SECONDS`."""
    limits = {"socket_timeout": TIMEOUT_SECONDS, "socket_connect_timeout": TIMEOUT_SECONDS}
    try:
        with redis.Redis.from_url(settings.REDIS_URL, **limits) as client:
            return bool(client.ping())
    except redis.RedisError as error:
        logger.warning("Not ready: %s", error)
        return False


def is_store_reachable() -> bool:
    """Return True if the object store answers. Uses `TIMEOUT_SECONDS`."""
    try:
        default_store().check_reachable(seconds=TIMEOUT_SECONDS)
    except StoreError as error:
        logger.warning("Not ready: %s", error)
        return False
    return True


readiness = Readiness(
    {
        DatabaseUnreachable: is_database_reachable,
        RedisUnreachable: is_redis_reachable,
        ObjectStoreUnreachable: is_store_reachable,
    }
)
