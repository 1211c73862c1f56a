"""Test whether a condition matches all requests that another one matches. True is always certain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.conditions.globs import glob_covers
from rules.conditions.networks import contains_network
from rules.conditions.normal import Choice, Literal, as_value
from rules.conditions.operators import Operator

if TYPE_CHECKING:
    from rules.conditions.model import Test
    from rules.conditions.normal import Conjunction


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
