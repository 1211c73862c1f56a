"""``invalid-cidr``: networks must be valid."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import find_one, find_places, rule_with

CODE = "invalid-cidr"


@pytest.mark.parametrize(
    "network", ["", "10.0.0.0/33", "10.0.0", "300.0.0.0/8", "::/129", "localhost", "fe80::1%eth0"]
)
def test_an_invalid_network_is_reported(network: str) -> None:
    assert find_places(CODE, rule_with({"clientIp": {"cidr": network}})) == [
        "/rules/0/conditions/clientIp/cidr"
    ]


def test_bits_after_the_prefix_are_reported_with_the_network() -> None:
    finding = find_one(CODE, rule_with({"clientIp": {"cidr": "10.1.2.3/8"}}))
    assert finding.suggestion == "10.0.0.0/8"
    assert finding.message == (
        '"10.1.2.3/8" is not a network: it has bits set to the right of its prefix;'
        " the network is 10.0.0.0/8."
    )


def test_the_message_names_the_text_once() -> None:
    assert find_one(CODE, rule_with({"clientIp": {"cidr": "localhost"}})).message == (
        '"localhost" is not a network: it does not appear to be an IPv4 or IPv6 network.'
    )


def test_every_element_is_checked() -> None:
    conditions = {"clientIp": {"cidr": ["10.0.0.0/8", "x", "2001:db8::/32", "y"]}}
    assert find_places(CODE, rule_with(conditions)) == [
        "/rules/0/conditions/clientIp/cidr/1",
        "/rules/0/conditions/clientIp/cidr/3",
    ]


@pytest.mark.parametrize("network", ["10.0.0.0/8", "10.0.0.1", "2001:db8::/32", "0.0.0.0/0"])
def test_valid_networks_are_not_reported(network: str) -> None:
    assert find_places(CODE, rule_with({"clientIp": {"cidr": network}})) == []
