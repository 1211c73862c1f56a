"""What is known about the current request: for recorded events, and for lines of the log."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_address: ContextVar[Callable[[], str]] = ContextVar("client_address", default=str)
_description: ContextVar[dict[str, str]] = ContextVar("description", default={})  # noqa: B039  # never changed
_reason: ContextVar[str] = ContextVar("reason", default="")


def current_address() -> str:
    """Return the client's address, or an empty text outside of a request."""
    return _address.get()()


def set_address(read: Callable[[], str]) -> None:
    """Set how to read the client's address of the current request. Few requests need it."""
    _address.set(read)


def describe_request(**names: object) -> None:
    """Set what lines of the log say about the current request or task, such as ``user`` and ``tenant``."""
    _description.set({**_description.get(), **{name: str(value) for name, value in names.items() if value}})


def clear_description() -> None:
    """Forget what `describe_request` has set: a thread answers one request after another."""
    _description.set({})


def current_description() -> dict[str, str]:
    """Return what `describe_request` has set."""
    return _description.get()


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
