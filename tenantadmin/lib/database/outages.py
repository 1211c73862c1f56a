"""Errors that say that a server which the service needs is away, for a while."""

from __future__ import annotations

import logging
from typing import Final

import redis
from django.db import InterfaceError, OperationalError

#: SQLSTATEs of a server that ends, starts or has no connection left: the classes 08 and 57P, and 53300.
_AWAY: Final = ("08", "57P", "53300")


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
