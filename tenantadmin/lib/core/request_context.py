"""Context of the current request, for its response, recorded events, and log lines."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

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


def current_network() -> str:
    """Return the network of the client's address, or an empty text outside of a request."""
    return network_of(current_address())


def client_address(request: HttpRequest) -> str:
    """Return the rightmost address of ``X-Forwarded-For`` that is not a trusted proxy.

    If the peer is not a trusted proxy, return the peer's address. It is empty if the server gives none.
    An IPv4 address that is mapped into IPv6 is returned as IPv4, and IPv6 in its short form without zone.
    """
    text = str(request.META.get("REMOTE_ADDR", ""))
    address = _parse(text)
    if address is None:
        return text
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
    networks = _networks(tuple(settings.TRUSTED_PROXIES))
    while forwarded and any(address in network for network in networks):
        previous = _parse(forwarded.pop())
        if previous is None:
            break
        address = previous
    return str(address)


def network_of(address: str) -> str:
    """Return the addresses that one client controls: the /64 network of an IPv6 address, else the address.

    All limits that count by client address use it.
    """
    parsed = _parse(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return address if parsed is None else str(parsed)


@lru_cache(maxsize=8)
def _networks(texts: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(text, strict=False) for text in texts)


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


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
