"""The one engine of this service process, made from the settings when it is first needed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from django.conf import settings

from logs.sql.local import LocalEngine
from logs.sql.remote import RemoteEngine

if TYPE_CHECKING:
    from logs.sql.protocol import Engine, Limits

_lock = threading.Lock()
_engine: Engine | None = None


def get_engine() -> Engine:
    """Return the engine that every query of this process shares. Starts nothing until its first query."""
    global _engine  # noqa: PLW0603 - one pool of processes, or of connections, per service process
    with _lock:
        if _engine is None:
            options = settings.SQL_OPTIONS
            if options.service_url:
                _engine = RemoteEngine(url=options.service_url, secret=options.service_secret)
            else:
                _engine = LocalEngine.from_options(options)
        return _engine


def get_limits() -> Limits:
    """Return what the settings let one query use. Contract: Limits."""
    limits: Limits = settings.SQL_OPTIONS.limits
    return limits
