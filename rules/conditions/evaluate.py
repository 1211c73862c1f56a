"""Decide whether conditions hold for a request. The compiled SQL (``rules.conditions.sql``) says the same.

Two-valued throughout: a test on null is false, except ``exists: false``, ``ne`` and ``notIn``; ``not``
turns that plain answer round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from rules.conditions.casefold import fold_case
from rules.conditions.globs import glob_matches
from rules.conditions.model import All, AnyOf, Condition, Not, Scalar, Test
from rules.conditions.networks import Address, Network, parse_address, parse_network
from rules.conditions.operators import Operator
from rules.conditions.regex import compile_regex
from rules.json_text import join_pointer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rules.conditions.request import Request, Value

#: A value that is not null.
Present: TypeAlias = "str | int | bool | frozenset[str]"


def holds(condition: Condition, request: Request) -> bool:
    """Decide a condition, stopping at the first part that settles it."""
    match condition:
        case Test():
            return holds_for(condition, request.get(condition.key.name))
        case All():
            return all(holds(part, request) for part in condition.parts)
        case AnyOf():
            return any(holds(part, request) for part in condition.parts)
        case Not():
            return not holds(condition.part, request)


@dataclass(frozen=True, slots=True)
class ConditionTrace:
    """What one condition answered.

    ``path`` is a JSON Pointer into the rule's conditions, ``operator`` a test's operator or ``all``, ``any``,
    ``not``. ``value`` is what a test looked at, ``parts`` what a combinator combined.
    """

    path: str
    holds: bool
    operator: str
    value: Value = None
    parts: tuple[ConditionTrace, ...] = ()


def trace(condition: Condition, request: Request) -> ConditionTrace:
    """Decide a condition and every part of it, whether it still matters or not."""
    match condition:
        case Test():
            value = request.get(condition.key.name)
            return ConditionTrace(
                join_pointer(condition.path),
                holds_for(condition, value),
                condition.operator.value,
                value=value,
            )
        case All():
            parts = tuple(trace(part, request) for part in condition.parts)
            return ConditionTrace(
                join_pointer(condition.path), all(part.holds for part in parts), "all", parts=parts
            )
        case AnyOf():
            parts = tuple(trace(part, request) for part in condition.parts)
            return ConditionTrace(
                join_pointer(condition.path), any(part.holds for part in parts), "any", parts=parts
            )
        case Not():
            inner = trace(condition.part, request)
            return ConditionTrace(join_pointer(condition.path), not inner.holds, "not", parts=(inner,))


def holds_for(test: Test, value: Value) -> bool:
    """Decide one test on one value."""
    if value is None:
        return _holds_for_null(test)
    if not test.ignore_case:
        return _PREDICATES[test.operator](test, value)
    if isinstance(value, str):
        value = fold_case(value)
    elif isinstance(value, frozenset):
        value = frozenset(fold_case(name) for name in value)
    return _PREDICATES[test.operator](fold_operand(test), value)


def fold_operand(test: Test) -> Test:
    """Lower the operands of a test that ignores case, except a pattern, whose engine ignores case itself."""
    if test.operator is Operator.REGEX:
        return test
    operands = tuple(fold_case(value) if isinstance(value, str) else value for value in test.operands)
    operand = operands if isinstance(test.operand, tuple) else operands[0]
    return Test(test.key, test.operator, operand, ignore_case=True, path=test.path)


def _holds_for_null(test: Test) -> bool:
    match test.operator:
        case Operator.EXISTS:
            return test.operand is False
        case Operator.NE | Operator.NOT_IN:
            return True
        case _:
            return False


def _equals(value: Present, operand: Scalar) -> bool:
    return value == frozenset((operand,)) if isinstance(value, frozenset) else value == operand


def _is_one_of(test: Test, value: Present) -> bool:
    return any(_equals(value, operand) for operand in test.operands)


def _compare_numbers(compare: Callable[[int, float], bool]) -> Callable[[Test, Present], bool]:
    def compare_to_operand(test: Test, value: Present) -> bool:
        operand = test.operand
        return isinstance(value, int) and isinstance(operand, int | float) and compare(value, operand)

    return compare_to_operand


def _compare_texts(compare: Callable[[str, str], bool]) -> Callable[[Test, Present], bool]:
    def compare_to_operand(test: Test, value: Present) -> bool:
        return isinstance(value, str) and compare(value, test.text)

    return compare_to_operand


def _search(test: Test, value: Present) -> bool:
    return isinstance(value, str) and compile_regex(test.text, ignore_case=test.ignore_case).is_found_in(
        value
    )


def _contains_any(test: Test, value: Present) -> bool:
    return isinstance(value, frozenset) and any(
        glob_matches(pattern, name) for pattern in test.texts for name in value
    )


def _contains_all(test: Test, value: Present) -> bool:
    return isinstance(value, frozenset) and all(
        any(glob_matches(pattern, name) for name in value) for pattern in test.texts
    )


def _lies_in_network(test: Test, value: Present) -> bool:
    address = parse_address(value) if isinstance(value, str) else None
    return address is not None and any(_lies_in(address, parse_network(text)) for text in test.texts)


def _lies_in(address: Address, network: Network) -> bool:
    return address.version == network.version and address in network


_PREDICATES: Final[dict[Operator, Callable[[Test, Present], bool]]] = {
    Operator.EQ: _is_one_of,
    Operator.IN: _is_one_of,
    Operator.NE: lambda test, value: not _is_one_of(test, value),
    Operator.NOT_IN: lambda test, value: not _is_one_of(test, value),
    Operator.EXISTS: lambda test, _value: test.operand is True,
    Operator.CONTAINS: _compare_texts(lambda value, operand: operand in value),
    Operator.STARTS_WITH: _compare_texts(str.startswith),
    Operator.ENDS_WITH: _compare_texts(str.endswith),
    Operator.REGEX: _search,
    Operator.GT: _compare_numbers(lambda value, operand: value > operand),
    Operator.GTE: _compare_numbers(lambda value, operand: value >= operand),
    Operator.LT: _compare_numbers(lambda value, operand: value < operand),
    Operator.LTE: _compare_numbers(lambda value, operand: value <= operand),
    Operator.CONTAINS_ANY: _contains_any,
    Operator.CONTAINS_ALL: _contains_all,
    Operator.CIDR: _lies_in_network,
}
