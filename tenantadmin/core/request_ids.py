"""The id of the current request, for its response and its log lines."""

from __future__ import annotations

import logging
import re
import uuid
from contextvars import ContextVar

HEADER = "X-Request-Id"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,128}")
_current: ContextVar[str] = ContextVar("request_id", default="-")


def current_request_id() -> str:
    """Return the id of the current request, or ``-`` outside a request."""
    return _current.get()


def begin_request(proposed: str | None) -> str:
    """Set and return the id of the request: the caller's id if it is acceptable, otherwise a new one."""
    is_accepted = proposed is not None and _ACCEPTED.fullmatch(proposed)
    request_id = proposed if is_accepted and proposed else uuid.uuid4().hex
    _current.set(request_id)
    return request_id


class RequestIdFilter(logging.Filter):
    """Adds ``request_id`` to every log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = current_request_id()
        return True
