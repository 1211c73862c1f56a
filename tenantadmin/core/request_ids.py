"""The id under which one request is answered and logged."""

from __future__ import annotations

import logging
import re
import uuid
from contextvars import ContextVar

HEADER = "X-Request-Id"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,128}")
_current: ContextVar[str] = ContextVar("request_id", default="-")


def current_request_id() -> str:
    """Return the id of the request being answered, or ``-`` outside of one."""
    return _current.get()


def begin_request(proposed: str | None) -> str:
    """Make the caller's id current where it is acceptable, a new one otherwise, and return it."""
    accepted = proposed is not None and _ACCEPTED.fullmatch(proposed)
    request_id = proposed if accepted and proposed else uuid.uuid4().hex
    _current.set(request_id)
    return request_id


class RequestIdFilter(logging.Filter):
    """Adds ``request_id`` to every log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = current_request_id()
        return True
