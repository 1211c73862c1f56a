"""Tests of the client's address behind trusted proxies."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import RequestFactory

from tenantadmin.lib.core.addresses import client_address, network_of


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
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_the_addresses_of_one_client_are_one_network(address: str, network: str) -> None:
    assert network_of(address) == network
