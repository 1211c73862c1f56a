"""The client's address of the current request, and the reason of a staff action, for recorded events."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_address: ContextVar[Callable[[], str]] = ContextVar("client_address", default=str)
_reason: ContextVar[str] = ContextVar("reason", default="")


def current_address() -> str:
    """Return the client's address, or an empty text outside of a request."""
    return _address.get()()


def set_address(read: Callable[[], str]) -> None:
    """Set how to read the client's address of the current request. Few requests need it."""
    _address.set(read)


def current_reason() -> str:
    """Return the reason that staff gave for the current action, or an empty text."""
    return _reason.get()


@contextmanager
def acting_for(reason: str) -> Iterator[None]:
    """Set the reason of actions inside the `with` block."""
    token = _reason.set(reason)
    try:
        yield
    finally:
        _reason.reset(token)
