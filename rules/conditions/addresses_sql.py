"""Compile CIDR tests to plain SQL. DuckDB's type ``inet`` needs an extension, which query processes lack.

An address is converted to a text that sorts like its number: ``4`` and 8 hexadecimal digits for IPv4, ``6``
and 32 digits for IPv6. Text that is not an address becomes null. A network is a ``BETWEEN`` of two of these
texts.
"""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Final

from rules.conditions.literals import quote_text
from rules.conditions.networks import parse_network

_OCTET: Final = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4: Final = rf"{_OCTET}(\.{_OCTET}){{3}}"
_GROUP: Final = "[0-9a-f]{1,4}"
_GROUPS: Final = f"({_GROUP}(:{_GROUP})*)?"
_IPV6: Final = f"({_GROUP}:){{7}}{_GROUP}|{_GROUPS}::{_GROUPS}"
_MAPPED_PREFIX: Final = "0" * 20 + "ffff"


def compile_network(column: str, network: str) -> str:
    """Return SQL for "the column is an address in the network". It is null if the text is not an address."""
    parsed = parse_network(network)
    width, version = (8, "4") if isinstance(parsed, IPv4Network) else (32, "6")
    first = f"{version}{int(parsed.network_address):0{width}x}"
    last = f"{version}{int(parsed.broadcast_address):0{width}x}"
    return f"({_sortable_address(column)} BETWEEN {quote_text(first)} AND {quote_text(last)})"


def _let(name: str, value: str, result: str) -> str:
    """Return SQL for ``result`` in which ``name`` is ``value``, which is evaluated only once."""
    return f"list_transform([{value}], lambda {name}: {result})[1]"


def _octet(address: str, position: int) -> str:
    return f"CAST(split_part({address}, '.', {position}) AS INTEGER)"


def _groups_of(side: str) -> str:
    return f"CASE WHEN {side} = '' THEN [] ELSE string_split({side}, ':') END"


def _padded(groups: str) -> str:
    return f"array_to_string(list_transform({groups}, lambda g: lpad(g, 4, '0')), '')"


def _sortable_address(column: str) -> str:
    octets = ", ".join(_octet("a", position) for position in range(1, 5))
    return _let(
        "a",
        f"lower({column})",
        f"CASE WHEN regexp_full_match(a, {quote_text(_IPV4)}) "
        f"THEN printf('4%02x%02x%02x%02x', {octets}) "
        f"WHEN contains(a, ':') THEN {_sortable_ipv6('a')} END",
    )


def _sortable_ipv6(address: str) -> str:
    # Replace an IPv4 address at the end by its two groups, then replace "::" by zeros.
    tail = "regexp_extract(t, '[0-9.]+$')"
    high = f"{_octet('q', 1)} * 256 + {_octet('q', 2)}"
    low = f"{_octet('q', 3)} * 256 + {_octet('q', 4)}"
    two_groups = _let("q", tail, f"printf('%x:%x', {high}, {low})")
    in_groups = _let(
        "t",
        address,
        f"CASE WHEN regexp_full_match(t, {quote_text('[0-9a-f:]*:' + _IPV4)}) "
        f"THEN regexp_extract(t, '^[0-9a-f:]*:') || {two_groups} ELSE t END",
    )
    zeros = "repeat('0000', 8 - len(h) - len(r))"
    filled = _let(
        "h",
        _groups_of("split_part(b, '::', 1)"),
        _let(
            "r",
            _groups_of("split_part(b, '::', 2)"),
            "CASE WHEN contains(b, '::') = (len(h) + len(r) < 8) AND len(h) + len(r) <= 8 "
            f"THEN {_padded('h')} || {zeros} || {_padded('r')} END",
        ),
    )
    digits = f"CASE WHEN regexp_full_match(b, {quote_text(_IPV6)}) THEN {filled} END"
    sortable = f"CASE WHEN starts_with(x, '{_MAPPED_PREFIX}') THEN '4' || x[25:] ELSE '6' || x END"
    return _let("b", in_groups, _let("x", digits, sortable))
