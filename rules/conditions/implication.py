"""Whether a condition matches all requests that another one matches, or every one. True is always certain.

``{"userName": {"contains": ""}}`` and ``{"tableCount": {"gte": 0}}`` hold for every value but null. Such a
test was hardly meant to exclude anything. A test that says so, ``exists``, is meant.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from math import floor
from typing import TYPE_CHECKING, Any, Final

from rules.conditions.keys import Kind, Operator
from rules.conditions.model import iterate_tests
from rules.conditions.normal import ALWAYS, NEVER, Choice, Literal, as_value, choose, conjoin, normalize
from rules.conditions.patterns import (
    InvalidRegex,
    compile_regex,
    contains_network,
    glob_covers,
    parse_network,
)

if TYPE_CHECKING:
    from rules.conditions.model import Condition, Test
    from rules.conditions.normal import Conjunction, Normal
    from rules.conditions.patterns import Network

_EXCLUDING: Final = frozenset({Operator.NE, Operator.NOT_IN})


def implies(narrow: Conjunction, wide: Conjunction) -> bool:
    """Return True if the wide condition certainly matches every request that the narrow one matches.

    If it returns False, the wide condition may still do so.
    """
    return all(_implies_part(narrow, part) for part in wide)


def _implies_part(narrow: Conjunction, part: Literal | Choice) -> bool:
    if part in narrow:
        return True
    if isinstance(part, Choice):
        return any(implies(narrow, alternative) for alternative in part.alternatives)
    return any(
        isinstance(known, Literal) and known.test.key is part.test.key and _implies_literal(known, part)
        for known in narrow
    )


def _implies_literal(known: Literal, needed: Literal) -> bool:
    test, target = known.test, needed.test
    if known.negated:
        return False
    if test.operator is Operator.EXISTS:
        return known.accepts(None) and needed.accepts(None)
    if test.operator in {Operator.EQ, Operator.IN} and not test.ignore_case:
        return all(needed.accepts(as_value(test, value)) for value in test.operands)
    if test.operator in _EXCLUDING:
        is_comparable = target.operator in _EXCLUDING and not needed.negated
        return is_comparable and test.ignore_case == target.ignore_case and _excludes(test, target)
    if not known.needs_value or needed.negated:
        return False
    if target.operator is Operator.EXISTS:
        return target.operand is True
    if target.operator in _EXCLUDING:
        # True if none of the excluded values can pass the known test.
        return not target.ignore_case and not any(
            known.accepts(as_value(target, value)) for value in target.operands
        )
    return test.ignore_case == target.ignore_case and _implies_pattern(test, target)


def _excludes(test: Test, target: Test) -> bool:
    return set(test.operands) >= set(target.operands)


def _implies_pattern(test: Test, target: Test) -> bool:
    match test.operator, target.operator:
        case Operator.GTE, Operator.GTE:
            return _number(test) >= _number(target)
        case Operator.LTE, Operator.LTE:
            return _number(test) <= _number(target)
        case Operator.STARTS_WITH, Operator.STARTS_WITH:
            return test.text.startswith(target.text)
        case Operator.ENDS_WITH, Operator.ENDS_WITH:
            return test.text.endswith(target.text)
        case ((Operator.CONTAINS | Operator.STARTS_WITH | Operator.ENDS_WITH), Operator.CONTAINS):
            return target.text in test.text
        case Operator.CONTAINS_ANY, Operator.CONTAINS_ANY:
            return all(_is_covered(pattern, target) for pattern in test.texts)
        case Operator.CONTAINS_ALL, Operator.CONTAINS_ANY:
            return any(_is_covered(pattern, target) for pattern in test.texts)
        case Operator.CONTAINS_ALL, Operator.CONTAINS_ALL:
            return all(any(glob_covers(wide, narrow) for narrow in test.texts) for wide in target.texts)
        case Operator.CIDR, Operator.CIDR:
            return all(any(contains_network(wide, narrow) for wide in target.texts) for narrow in test.texts)
        case _:
            return False


def _is_covered(pattern: str, target: Test) -> bool:
    return any(glob_covers(wide, pattern) for wide in target.texts)


def _number(test: Test) -> float:
    assert isinstance(test.operand, int | float)  # noqa: S101 - narrows what the parser has checked
    return test.operand


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
