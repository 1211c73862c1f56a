"""Tests of the client's address behind trusted proxies."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from tenantadmin.lib.core.request_context import client_address, network_of


@pytest.mark.parametrize(
    ("proxies", "peer", "forwarded", "expected"),
    [
        ([], "203.0.113.9", None, "203.0.113.9"),
        ([], "203.0.113.9", "198.51.100.1", "203.0.113.9"),
        (["10.0.0.0/8"], "203.0.113.9", "198.51.100.1", "203.0.113.9"),
        (["10.0.0.0/8"], "10.0.0.1", "198.51.100.1", "198.51.100.1"),
        (["10.0.0.0/8"], "10.0.0.1", "192.0.2.66, 198.51.100.1", "198.51.100.1"),
        (["10.0.0.0/8"], "10.0.0.1", "192.0.2.66, 198.51.100.1, 10.2.3.4", "198.51.100.1"),
        (["10.0.0.0/8"], "10.0.0.1", "10.2.3.4", "10.2.3.4"),
        (["10.0.0.0/8"], "10.0.0.1", None, "10.0.0.1"),
        (["10.0.0.0/8"], "10.0.0.1", "198.51.100.1, evil", "10.0.0.1"),
        (["::1"], "::1", "2001:db8::7", "2001:db8::7"),
        (["10.0.0.0/8"], "", "198.51.100.1", ""),
        ([], "::ffff:203.0.113.9", None, "203.0.113.9"),
        (["10.0.0.0/8"], "::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"),
        ([], "2001:DB8:0::7", None, "2001:db8::7"),
        ([], "fe80::1%eth0", None, "fe80::1"),
        ([], "unix:", None, "unix:"),
    ],
)
def test_the_client_is_the_last_address_that_is_not_a_trusted_proxy(
    settings: Any, proxies: list[str], peer: str, forwarded: str | None, expected: str
) -> None:
    settings.TRUSTED_PROXIES = proxies
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}

    request = RequestFactory().get("/", headers=headers, REMOTE_ADDR=peer)
    assert client_address(request) == expected


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8:0:0:ffff::2", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_the_addresses_of_one_client_are_one_network(address: str, network: str) -> None:
    assert network_of(address) == network


@given(st.ip_addresses(v=4), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_however_an_address_is_written_its_network_is_one(ipv4: IPv4Address, low: int, other: int) -> None:
    mapped = IPv6Address(0xFFFF << 32 | int(ipv4))
    assert {network_of(str(ipv4)), network_of(str(mapped)), network_of(mapped.exploded)} == {str(ipv4)}
    prefix = 0x2001_0DB8_0000_0000 + (int(ipv4) & 0xFFFF)
    first, second = (IPv6Address(prefix << 64 | suffix) for suffix in (low, other))
    assert network_of(str(first)) == network_of(second.exploded.upper())
    assert network_of(str(first)) != network_of(str(IPv6Address((prefix ^ 1) << 64 | low)))
