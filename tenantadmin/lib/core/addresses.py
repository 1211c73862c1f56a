"""The client's IP address. ``X-Forwarded-For`` counts only if a trusted proxy sent it."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """Return the rightmost address of ``X-Forwarded-For`` that is not a trusted proxy.

    If the peer is not a trusted proxy, return the peer's address. It is empty if the server gives none.
    """
    address = str(request.META.get("REMOTE_ADDR", ""))
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
    networks = _networks(tuple(settings.TRUSTED_PROXIES))
    while forwarded and _is_in(address, networks):
        previous = forwarded.pop()
        if not _is_address(previous):
            break
        address = previous
    return address


def network_of(address: str) -> str:
    """Return the addresses that one client controls: the /64 network of an IPv6 address, else the address."""
    if not _is_address(address) or ip_address(address).version == 4:
        return address
    return str(ip_network((address, 64), strict=False))


@lru_cache(maxsize=8)
def _networks(texts: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(text, strict=False) for text in texts)


def _is_in(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    return _is_address(address) and any(ip_address(address) in network for network in networks)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
