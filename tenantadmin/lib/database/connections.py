"""Connections: time limits, repetition after a migration, advisory locks, servers that are away."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import psycopg
import redis
from django.db import InterfaceError, OperationalError, ProgrammingError, connection
from django.db.backends.signals import connection_created
from django.db.migrations.executor import MigrationExecutor
from psycopg.errors import UndefinedTable

from tenantadmin.lib.database.plans import retry_after_migration

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

#: How much longer this process waits than the server should take.
_GRACE_SECONDS: Final = 2.0
#: SQLSTATEs of a server that ends, starts or has no connection left: the classes 08 and 57P, and 53300.
_AWAY: Final = ("08", "57P", "53300")


def limit_connections(*, statement_seconds: float, idle_transaction_seconds: float) -> None:
    """Limit every connection that this process opens from now on. 0 means no limit.

    A statement that takes longer fails with OperationalError, also if it waits for a lock. A transaction that
    waits longer for its next statement loses its connection. If the server does not answer at all, because it
    hangs or the network is gone, this process gives up two seconds later and closes the connection.

    A prepared statement is sent again if a migration has changed the type of its columns.

    The web process and Celery call it. Commands of ``manage.py`` have no limits: a migration may take long.
    """
    limits = {
        "statement_timeout": round(statement_seconds * 1000),
        "idle_in_transaction_session_timeout": round(idle_transaction_seconds * 1000),
    }

    # libpq's "options" would need no query, but PgBouncer refuses them.
    def apply(connection: BaseDatabaseWrapper, **_: Any) -> None:
        with connection.cursor() as cursor:
            for name, milliseconds in limits.items():
                cursor.execute("SELECT set_config(%s, %s, false)", [name, str(milliseconds)])
        if statement_seconds:
            server: psycopg.Connection[Any] = connection.connection
            wait = partial(_wait, server, server.wait, timeout=statement_seconds + _GRACE_SECONDS)
            server.wait = wait  # type: ignore[method-assign]
        if retry_after_migration not in connection.execute_wrappers:
            connection.execute_wrappers.append(retry_after_migration)

    connection_created.connect(apply, weak=False, dispatch_uid=__name__)


def _wait(
    connection: psycopg.Connection[Any],
    wait: Callable[..., Any],
    *arguments: Any,
    timeout: float,
    **options: Any,
) -> Any:
    """Wait for the server's answer as psycopg does, but not for ever.

    Raises:
        OperationalError: there was no answer. The connection is closed, because the answer may still come.
    """
    try:
        return wait(*arguments, timeout=timeout, **options)
    except psycopg.errors._WaitTimeout as error:
        connection.pgconn.finish()
        raise psycopg.OperationalError(f"the server did not answer within {timeout:g} seconds") from error


class Busy(Exception):
    """Another worker is doing the same. Try again later."""


@contextmanager
def advisory_lock(name: str, *, wait: bool) -> Iterator[None]:
    """Hold the lock with this name.

    The lock belongs to the database session. If a worker dies, its connection closes and the lock is free.

    Raises:
        Busy: another session holds it, and ``wait`` is false.
    """
    number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)
    with connection.cursor() as cursor:
        if wait:
            cursor.execute("SELECT pg_advisory_lock(%s)", [number])
        else:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [number])
            if not cursor.fetchone()[0]:
                raise Busy(f"Another worker is at work: {name}")
    try:
        yield
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [number])


def build_lock(*, tenant: UUID, period: str, wait: bool) -> AbstractContextManager[None]:
    """Hold the lock of a tenant's ``period``: ``2026-03-01``, ``2026-03``, ``2026`` or ``history``.

    Raises:
        Busy: another session holds it, and ``wait`` is false.
    """
    return advisory_lock(f"build {tenant} {period}", wait=wait)


NOT_MIGRATED: Final = (
    "The database is not migrated: "
    "run manage.py migrate, or set VAR_DIR or DATABASE_URL to the value of the service."
)


def is_missing_migrations(error: ProgrammingError) -> bool:
    """Return True if a table is missing and the database has unapplied migrations."""
    if not isinstance(error.__cause__, UndefinedTable):
        return False
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def is_database_away(error: BaseException | None) -> bool:
    """Return True if PostgreSQL could not be reached, or ended the connection.

    An error of a statement, such as a deadlock or one that took too long, has an SQLSTATE of its own.
    """
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state.startswith(_AWAY)


def is_redis_away(error: BaseException | None) -> bool:
    """Return True if Redis could not be reached, as Redis' client, kombu or limits say."""
    while error is not None and not isinstance(error, redis.ConnectionError | redis.TimeoutError):
        error = error.__cause__
    return error is not None


class NoOutageTraceback(logging.Filter):
    """Leaves out the traceback of an outage. It shows where a server was missed, and never why."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if is_database_away(error) or is_redis_away(error) or _is_of_broker(record.name, error):
            record.msg, record.args = f"{record.getMessage()}: {' '.join(str(error).split())}", ()
            record.exc_info = None
        return True


def _is_of_broker(logger: str, error: BaseException | None) -> bool:
    """Return True if Celery says what Redis refused, such as a write while it has no memory left."""
    return logger.startswith("celery") and type(error).__module__.partition(".")[0] in {"redis", "kombu"}
