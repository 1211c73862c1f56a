"""The one engine of this service process, made from the settings when it is first needed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from django.conf import settings

from logs.sql.local import LocalEngine
from logs.sql.protocol import Limits

if TYPE_CHECKING:
    from logs.sql.protocol import Engine

_lock = threading.Lock()
_engine: LocalEngine | None = None


def get_engine() -> Engine:
    """Return the engine that every query of this process shares. Starts nothing until its first query."""
    global _engine  # noqa: PLW0603 - one pool of processes per service process
    with _lock:
        if _engine is None:
            _engine = LocalEngine(
                slots=settings.SQL_SLOTS,
                per_tenant=settings.SQL_SLOTS_PER_TENANT,
                queue=settings.SQL_QUEUE,
                warm=settings.SQL_WARM_PROCESSES,
                usual=get_limits(),
            )
        return _engine


def get_limits() -> Limits:
    """Return what the settings let one query use. Contract: Limits."""
    return Limits(
        seconds=settings.SQL_TIMEOUT_SECONDS,
        max_rows=settings.SQL_MAX_ROWS,
        max_bytes=settings.SQL_MAX_BYTES,
        memory_bytes=settings.SQL_MEMORY_BYTES,
        threads=settings.SQL_THREADS,
    )
