"""Whether conditions match every statement, however they say it.

``{"userName": {"contains": ""}}`` and ``{"tableCount": {"gte": 0}}`` hold for every value but null. Such a
test was hardly meant to exclude anything. A test that says so, ``exists``, is meant.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any, Final

from rules.conditions.model import iterate_tests
from rules.conditions.networks import parse_network
from rules.conditions.normal import ALWAYS, NEVER, Choice, choose, conjoin, normalize
from rules.conditions.operators import Operator
from rules.conditions.regex import InvalidRegex, compile_regex

if TYPE_CHECKING:
    from rules.conditions.model import Condition, Test
    from rules.conditions.networks import Network
    from rules.conditions.normal import Literal, Normal

#: The only numeric key counts tables, and its column has 32 bits.
_MAX_COUNT: Final = 2**31 - 1
_REGEX: Final = re.compile(
    r"(?P<flags>\(\?[ims]+\))?(?P<start>\^|\\A)?(?P<body>.*?)(?P<end>\$|\\z)?", re.DOTALL
)
#: What ends or begins a word, a line or the text.
_ASSERTION: Final = re.compile(r"\^|\$|\\[AzbB]")
#: Patterns of any text. A dot does not match a line break.
_ANY_TEXT: Final = frozenset({r"[\s\S]*", r"(.|\n)*", r"(?:.|\n)*", r"[\d\D]*", r"[\w\W]*"})


def matches_everything(condition: Condition) -> bool:
    """Return True if a condition matches every statement.

    A test that holds for every value but null counts as none.
    """
    meant = {test.key.name for test, _ in iterate_tests(condition) if test.operator is Operator.EXISTS}
    return _without_presence(normalize(condition), meant) == ALWAYS


def _without_presence(normal: Normal, meant: set[str]) -> Normal:
    """Return the normal form without tests that hold for every value; keys in ``meant`` keep theirs."""
    if normal is NEVER:
        return NEVER
    return conjoin(
        choose([_without_presence(alternative, meant) for alternative in part.alternatives])
        if isinstance(part, Choice)
        else ALWAYS
        if part.test.key.name not in meant and _holds_for_values(part)
        else frozenset({part})
        for part in normal
    )


def _holds_for_values(literal: Literal) -> bool:
    """Return True if a literal holds for every value but null."""
    test = literal.test
    match test.operator:
        case Operator.EXISTS:
            return test.operand is True
        case Operator.GTE:
            return not literal.negated and _number(test) <= 0
        case Operator.LTE:
            return _number(test) < 0 if literal.negated else _number(test) >= _MAX_COUNT
        case _ if literal.negated:
            return False
        case Operator.CONTAINS_ANY:
            return any(not pattern.strip("*") and pattern for pattern in test.texts)
        case Operator.CONTAINS_ALL:
            return all(not pattern.strip("*") and pattern for pattern in test.texts)
        case Operator.CIDR:
            networks = [parse_network(text) for text in test.texts]
            return all(_covers_all(networks, version) for version in (4, 6))
        case Operator.REGEX:
            return _finds_everything(test.text)
        case _:
            return False


def _covers_all(networks: list[Network], version: int) -> bool:
    """Return True if the networks together have all addresses of a version of IP."""
    own: list[Any] = [network for network in networks if network.version == version]
    return [network.prefixlen for network in ipaddress.collapse_addresses(own)] == [0]


def _number(test: Test) -> int:
    assert isinstance(test.operand, int)  # noqa: S101 - for mypy; the normal form of bounds has integers
    return test.operand


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
