"""Read CIDR networks and client addresses."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network
Address: TypeAlias = IPv4Address | IPv6Address

_PREFIX: Final = re.compile(r"[^/%]+(/[0-9]{1,3})?", re.ASCII)
_MAPPED: Final = IPv6Network("::ffff:0:0/96")


class InvalidCidr(ValueError):
    """A text is not a network. ``suggestion`` is the network that was probably meant, if that is clear."""

    def __init__(self, problem: str, *, suggestion: str | None = None) -> None:
        super().__init__(problem)
        self.suggestion = suggestion


@lru_cache(maxsize=4096)
def parse_network(text: str) -> Network:
    """Read ``10.0.0.0/8``, ``2001:db8::/32`` or a single address.

    A network inside ``::ffff:0:0/96`` is returned as the IPv4 network that it maps.

    Raises:
        InvalidCidr: not a network, or with bits set to the right of the prefix.
    """
    if not _PREFIX.fullmatch(text):
        raise InvalidCidr("is not an address, or an address and a prefix length such as 10.0.0.0/8")
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise InvalidCidr("does not appear to be an IPv4 or IPv6 network") from None
    address = ip_address(text.partition("/")[0])
    if network.network_address != address:
        raise InvalidCidr(
            f"has bits set to the right of its prefix; the network is {network}", suggestion=str(network)
        )
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        mapped = IPv4Address(int(network.network_address) & 0xFFFFFFFF)
        return IPv4Network((mapped, network.prefixlen - 96))
    return network


def parse_address(text: str) -> Address | None:
    """Return a client address, or None if the text is not one. ``::ffff:10.0.0.1`` becomes ``10.0.0.1``."""
    if "%" in text:
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def contains_network(outer: str, inner: str) -> bool:
    """Return True if the network ``inner`` is part of the network ``outer``."""
    wide, narrow = parse_network(outer), parse_network(inner)
    if isinstance(wide, IPv4Network):
        return isinstance(narrow, IPv4Network) and narrow.subnet_of(wide)
    return isinstance(narrow, IPv6Network) and narrow.subnet_of(wide)
