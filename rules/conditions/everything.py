"""Whether conditions match every statement, however they say it.

``{"userName": {"contains": ""}}`` and ``{"tableCount": {"gte": 0}}`` hold for every value but null. Such a
test was hardly meant to exclude anything. A test that says so, ``exists``, is meant.
"""

from __future__ import annotations

import ipaddress
import re
from math import floor
from typing import TYPE_CHECKING, Any, Final

from rules.conditions.keys import Kind
from rules.conditions.model import iterate_tests
from rules.conditions.networks import parse_network
from rules.conditions.normal import ALWAYS, NEVER, Choice, Literal, choose, conjoin, normalize
from rules.conditions.operators import Operator
from rules.conditions.regex import InvalidRegex, compile_regex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rules.conditions.model import Condition
    from rules.conditions.networks import Network
    from rules.conditions.normal import Normal

#: The only numeric key counts tables, and its column has 32 bits.
_MAX_COUNT: Final = 2**31 - 1
#: The most different operands for which numbers are tried.
_MAX_OPERANDS: Final = 50
_REGEX: Final = re.compile(
    r"(?P<flags>\(\?[ims]+\))?(?P<start>\^|\\A)?(?P<body>.*?)(?P<end>\$|\\z)?", re.DOTALL
)
#: What ends or begins a word, a line or the text. ``[^`` begins a class of characters.
_ASSERTION: Final = re.compile(r"(?<!\[)\^|\$|\\[AzbB]")
#: Patterns of any text. A dot does not match a line break.
_ANY_TEXT: Final = frozenset({r"[\s\S]*", r"(.|\n)*", r"(?:.|\n)*", r"[\d\D]*", r"[\w\W]*"})


def matches_everything(condition: Condition) -> bool:
    """Return True if a condition matches every statement.

    A test that holds for every value but null counts as none.
    """
    return without_presence(condition) == ALWAYS


def without_presence(condition: Condition) -> Normal:
    """Return the normal form without tests that hold for every value but null, as nobody means them."""
    meant = {test.key.name for test, _ in iterate_tests(condition) if test.operator is Operator.EXISTS}
    return _without_presence(normalize(condition), meant)


def _without_presence(normal: Normal, meant: set[str]) -> Normal:
    """Return the normal form without tests that hold for every value; keys in ``meant`` keep theirs."""
    if normal is NEVER:
        return NEVER
    return conjoin(_part_without_presence(part, meant) for part in normal)


def _part_without_presence(part: Literal | Choice, meant: set[str]) -> Normal:
    literals = _alternative_literals(part)
    keys = {literal.test.key for literal in literals}
    if len(keys) == 1 and not meant.intersection(key.name for key in keys):
        (key,) = keys
        if key.kind is Kind.NUMBER and _hold_for_numbers(literals):
            return ALWAYS
        if key.kind is Kind.IP and _hold_for_addresses(literals):
            return ALWAYS
        if isinstance(part, Literal) and _holds_for_values(part):
            return ALWAYS
    if isinstance(part, Choice):
        return choose([_without_presence(alternative, meant) for alternative in part.alternatives])
    return frozenset({part})


def _alternative_literals(part: Literal | Choice) -> list[Literal]:
    """Return a literal, or the alternatives of a choice if each is a literal."""
    alternatives = part.alternatives if isinstance(part, Choice) else [frozenset({part})]
    found = [literal for parts in alternatives for literal in parts if len(parts) == 1]
    literals = [literal for literal in found if isinstance(literal, Literal)]
    return literals if len(literals) == len(alternatives) else []


def _hold_for_numbers(literals: Sequence[Literal]) -> bool:
    """Return True if each number of tables is accepted by a literal. It changes only at the operands."""
    operands = {
        floor(value)
        for literal in literals
        for value in literal.test.operands
        if isinstance(value, int | float)
    }
    if len(operands) > _MAX_OPERANDS:
        return False
    edges = {0, _MAX_COUNT, *(value + step for value in operands for step in (-1, 0, 1))}
    return all(
        any(literal.accepts(number) for literal in literals) for number in edges if 0 <= number <= _MAX_COUNT
    )


def _hold_for_addresses(literals: Sequence[Literal]) -> bool:
    """Return True if the networks of the literals together have all addresses."""
    tests = [literal.test for literal in literals if not literal.negated]
    networks = [
        parse_network(text) for test in tests if test.operator is Operator.CIDR for text in test.texts
    ]
    return all(_covers_all(networks, version) for version in (4, 6))


def _holds_for_values(literal: Literal) -> bool:
    """Return True if a literal holds for every value but null."""
    test = literal.test
    match test.operator:
        case Operator.EXISTS:
            return test.operand is True
        case _ if literal.negated:
            return False
        case Operator.CONTAINS_ANY:
            return any(not pattern.strip("*") and pattern for pattern in test.texts)
        case Operator.CONTAINS_ALL:
            return all(not pattern.strip("*") and pattern for pattern in test.texts)
        case Operator.REGEX:
            return _finds_everything(test.text)
        case _:
            return False


def _covers_all(networks: list[Network], version: int) -> bool:
    """Return True if the networks together have all addresses of a version of IP."""
    own: list[Any] = [network for network in networks if network.version == version]
    return [network.prefixlen for network in ipaddress.collapse_addresses(own)] == [0]


def _finds_everything(pattern: str) -> bool:
    """Return True if a pattern is certainly found in every text."""
    parts = _REGEX.fullmatch(pattern)
    if parts is None or _ASSERTION.search(parts["body"]):
        return False
    body, flags = parts["body"], parts["flags"] or ""
    if parts["start"] and parts["end"]:
        return body in _ANY_TEXT or ("s" in flags and body == ".*")
    try:
        # Then it finds the empty text at the beginning or the end of every text.
        return compile_regex(flags + body).is_found_in("")
    except InvalidRegex:
        return False
