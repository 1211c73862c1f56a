"""Context of the current request, for its response, recorded events, and log lines."""

from __future__ import annotations

import logging
import re
import uuid
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REQUEST_ID_HEADER: Final = "X-Request-Id"
#: Maximum length of a reason.
MAX_REASON: Final = 500
#: What a reason is for and who reads it, where staff are asked for one.
REASON_HELP: Final = (
    "Why you do this. Other staff read it in the audit log, and customers in the history of what you change."
)
_ACCEPTED_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")

_request_id: ContextVar[str] = ContextVar("request_id", default="-")
_address: ContextVar[Callable[[], str]] = ContextVar("client_address", default=str)
_description: ContextVar[dict[str, str]] = ContextVar("description", default={})  # noqa: B039  # never changed
_reason: ContextVar[str] = ContextVar("reason", default="")


def current_request_id() -> str:
    """Return the id of the current request, or ``-`` outside a request."""
    return _request_id.get()


def begin_request(proposed: str | None) -> str:
    """Set and return the id of the request: the caller's id if it is acceptable, otherwise a new one."""
    is_accepted = proposed is not None and _ACCEPTED_ID.fullmatch(proposed)
    request_id = proposed if is_accepted and proposed else uuid.uuid4().hex
    _request_id.set(request_id)
    return request_id


class RequestIdFilter(logging.Filter):
    """Adds ``request_id`` to every log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = current_request_id()
        return True


def current_address() -> str:
    """Return the client's address, or an empty text outside of a request."""
    return _address.get()()


def set_address(read: Callable[[], str]) -> None:
    """Set how to read the client's address of the current request. Few requests need it."""
    _address.set(read)


def describe_request(**names: object) -> None:
    """Set log fields of the current request or task, such as ``user`` and ``tenant``."""
    _description.set({**_description.get(), **{name: str(value) for name, value in names.items() if value}})


def clear_description() -> None:
    """Clear the log fields, because a thread answers one request after another."""
    _description.set({})


def current_description() -> dict[str, str]:
    """Return the log fields."""
    return _description.get()


def current_reason() -> str:
    """Return the reason that was given for the current action, or an empty text."""
    return _reason.get()


def give_reason(reason: str) -> None:
    """Set the reason of actions from now on, inside a block of `acting_for`."""
    _reason.set(reason)


@contextmanager
def acting_for(reason: str) -> Iterator[None]:
    """Set the reason of actions inside the `with` block."""
    token = _reason.set(reason)
    try:
        yield
    finally:
        _reason.reset(token)
