"""Connections of long-running processes: time limits, and repetition of statements after a migration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import psycopg
from django.db.backends.signals import connection_created

from tenantadmin.lib.database.plans import retry_after_migration

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper

#: How much longer this process waits than the server should take.
_GRACE_SECONDS: Final = 2.0


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
