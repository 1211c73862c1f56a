"""How a Gateway decides by rules: conditions and operators as `docs/rules.md` defines them, in plain Python.

It uses none of the service's code, and supports everything that lint allows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

import re2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Request = dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """The rule that decides, or None; and the rules that invalidate others once the statement succeeded."""

    rule: Mapping[str, Any] | None
    fired: Sequence[Mapping[str, Any]]


def decide(rules: Sequence[Mapping[str, Any]], request: Request) -> Decision:
    """Decide by the first enabled rule that matches. Every one that matches fires, unless it was denied."""
    matching = [rule for rule in rules if rule["enabled"] and matches(rule["conditions"], request)]
    if not matching:
        return Decision(None, ())
    denied = matching[0]["action"] == "deny"
    return Decision(matching[0], () if denied else [rule for rule in matching if rule.get("invalidateRules")])


def matches(conditions: Mapping[str, Any], request: Request) -> bool:
    """Return True if all members of `conditions` hold."""
    return all(_holds(name, expected, request) for name, expected in conditions.items())


def _holds(name: str, expected: Any, request: Request) -> bool:
    if name == "all":
        return all(matches(part, request) for part in expected)
    if name == "any":
        return any(matches(part, request) for part in expected)
    if name == "not":
        return not matches(expected, request)
    value = request.get(name)
    if not isinstance(expected, dict):
        expected = {"eq": expected}
    ignore_case = expected.get("ignoreCase", False)
    return all(
        _test(operator, value, operand, ignore_case=ignore_case)
        for operator, operand in expected.items()
        if operator != "ignoreCase"
    )


def _test(operator: str, value: Any, operand: Any, *, ignore_case: bool) -> bool:  # noqa: C901
    if operator == "exists":
        return bool((value is not None) == operand)
    if value is None:
        # Null matches nothing, but it differs from everything.
        return operator in {"ne", "notIn"}
    if operator == "regex":
        return re2.search(f"(?i){operand}" if ignore_case else operand, value) is not None
    if operator == "cidr":
        networks = operand if isinstance(operand, list) else [operand]
        return any(ip_address(value) in ip_network(network) for network in networks)
    if ignore_case:
        value, operand = _lower(value), _lower(operand)
    match operator:
        case "eq":
            return _equals(value, operand)
        case "ne":
            return not _equals(value, operand)
        case "in":
            return any(_equals(value, one) for one in operand)
        case "notIn":
            return not any(_equals(value, one) for one in operand)
        case "contains":
            return bool(operand in value)
        case "startsWith":
            return bool(value.startswith(operand))
        case "endsWith":
            return bool(value.endswith(operand))
        case "gt":
            return bool(value > operand)
        case "gte":
            return bool(value >= operand)
        case "lt":
            return bool(value < operand)
        case "lte":
            return bool(value <= operand)
        case "containsAny":
            return any(_fits(pattern, table) for pattern in operand for table in value)
        case "containsAll":
            return all(any(_fits(pattern, table) for table in value) for pattern in operand)
    raise ValueError(f"{operator} is not an operator")


def _equals(value: Any, operand: Any) -> bool:
    """`tables` equals a name if it is the only table."""
    return set(value) == {operand} if isinstance(value, list) else bool(value == operand)


def _lower(value: Any) -> Any:
    if isinstance(value, list):
        return [_lower(one) for one in value]
    return value.lower() if isinstance(value, str) else value


def _fits(pattern: str, table: str) -> bool:
    """Only `*` has a meaning in a pattern: any characters."""
    literal = "*".join(part.replace("[", "[[]").replace("?", "[?]") for part in pattern.split("*"))
    return re.match(translate(literal), table) is not None
