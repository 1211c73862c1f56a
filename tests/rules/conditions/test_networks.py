"""Reading networks and addresses, and comparing networks."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from rules.conditions.patterns import InvalidCidr, contains_network, parse_address, parse_network


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3", "10.1.2.3/32"),
        ("2001:DB8::/32", "2001:db8::/32"),
        ("::1", "::1/128"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("0.0.0.0/0", "0.0.0.0/0"),
    ],
)
def test_valid_networks_are_read(text: str, network: str) -> None:
    assert parse_network(text) == ip_network(network)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.0.0",
        "10.0.0.0/33",
        "10.0.0.0/255.0.0.0",
        "10.0.0.0/-1",
        "fe80::1%eth0",
        "::/129",
        "10.0.0.0/8 ",
        "host",
        "10.0.0.0/８",
        "10.0.0.0/",
    ],
)
def test_invalid_networks_are_refused(text: str) -> None:
    with pytest.raises(InvalidCidr) as raised:
        parse_network(text)
    assert raised.value.suggestion is None


def test_bits_after_the_prefix_suggest_the_network() -> None:
    with pytest.raises(InvalidCidr, match=r"the network is 10\.0\.0\.0/8") as raised:
        parse_network("10.1.2.3/8")
    assert raised.value.suggestion == "10.0.0.0/8"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("::1", "::1"),
    ],
)
def test_valid_addresses_are_read(text: str, address: str) -> None:
    assert parse_address(text) == ip_address(address)


@pytest.mark.parametrize("text", ["", "10.0.0.01", "10.0.0.1:80", "fe80::1%eth0", "unknown", "10.0.0.1\n"])
def test_invalid_addresses_are_none(text: str) -> None:
    assert parse_address(text) is None


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("10.0.0.0/8", "10.1.0.0/16", True),
        ("10.1.0.0/16", "10.0.0.0/8", False),
        ("::/0", "2001:db8::/32", True),
        ("::/0", "10.0.0.0/8", False),
        ("0.0.0.0/0", "::ffff:10.0.0.0/104", True),
    ],
)
def test_a_network_contains_its_subnetworks(outer: str, inner: str, expected: bool) -> None:
    assert contains_network(outer, inner) is expected
