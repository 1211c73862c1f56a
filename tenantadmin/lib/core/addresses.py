"""The client's IP address. ``X-Forwarded-For`` counts only if a trusted proxy sent it."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest


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
