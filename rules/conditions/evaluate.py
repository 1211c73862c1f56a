"""Evaluate conditions for a request or a log row. ``rules.conditions.sql`` gives the same results in SQL.

Every condition is true or false. A test on null is false, except ``exists: false``, ``ne`` and ``notIn``;
``not`` negates that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from rules.conditions.keys import CONDITION_KEYS, ConditionKey, Kind, Operator
from rules.conditions.model import All, AnyOf, Condition, Not, Operand, Scalar, Test
from rules.conditions.patterns import (
    Address,
    Network,
    compile_regex,
    fold_case,
    glob_matches,
    parse_address,
    parse_network,
)
from rules.json_text import is_array, join_pointer, name_type, read_integer
from tenantadmin.lib.core.serving import check_work

#: The value of a condition key. Table names are a set.
Value: TypeAlias = str | int | bool | frozenset[str] | None

Request: TypeAlias = dict[str, Value]

_decode_array: Final = msgspec.json.Decoder(list[Any]).decode


class InvalidRequest(ValueError):
    """A value of a request has the wrong type. The message names the column, which is ``key``."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def read_request(values: Mapping[str, object]) -> Request:
    """Read the condition keys from a row of ``proxy_logs`` or from a Gateway request.

    An absent key is null; other columns are ignored. ``tables`` is a list of names, or its JSON text. Text
    that is not a JSON array counts as null; elements that are not strings are ignored.

    Raises:
        InvalidRequest: a value has another type than its column.
    """
    return {name: _read_value(key, values.get(name)) for name, key in CONDITION_KEYS.items()}


_EXPECTED_TYPES: Final = {
    Kind.TEXT: "a string",
    Kind.IP: "a string",
    Kind.BOOL: "a boolean",
    Kind.NUMBER: "an integer",
    Kind.TABLES: "a JSON array of strings, or its text",
}


def _read_value(key: ConditionKey, value: object) -> Value:
    if value is None:
        return None
    match key.kind:
        case Kind.TEXT | Kind.IP if isinstance(value, str):
            return value
        case Kind.BOOL if isinstance(value, bool):
            return value
        case Kind.NUMBER if (number := read_integer(value)) is not None:
            return number
        case Kind.TABLES if isinstance(value, str):
            return read_table_names(value)
        case Kind.TABLES if is_array(value):
            return frozenset(name for name in value if isinstance(name, str))
    raise InvalidRequest(
        key.name, f"{key.name} must be {_EXPECTED_TYPES[key.kind]} or null, not {name_type(value)}"
    )


def read_table_names(text: str) -> frozenset[str] | None:
    """Return the texts in a JSON array, or None if ``text`` is not a JSON array."""
    try:
        names = _decode_array(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return frozenset(name for name in names if isinstance(name, str))


#: A value that is not null.
Present: TypeAlias = "str | int | bool | frozenset[str]"


def matches(condition: Condition, request: Request) -> bool:
    """Evaluate a condition for a request. Stop at the first part that decides the result."""
    match condition:
        case Test():
            return matches_value(condition, request.get(condition.key.name))
        case All():
            return all(matches(part, request) for part in condition.parts)
        case AnyOf():
            return any(matches(part, request) for part in condition.parts)
        case Not():
            return not matches(condition.part, request)


def matches_partly(condition: Condition, known: Request) -> bool | None:
    """Evaluate a condition for a request of which only some keys are known. None: the others decide."""
    match condition:
        case Test():
            name = condition.key.name
            return matches_value(condition, known[name]) if name in known else None
        case All():
            return _decide_parts(condition.parts, known, decisive=False)
        case AnyOf():
            return _decide_parts(condition.parts, known, decisive=True)
        case Not():
            inner = matches_partly(condition.part, known)
            return None if inner is None else not inner


def _decide_parts(parts: Iterable[Condition], known: Request, *, decisive: bool) -> bool | None:
    """Evaluate parts of which one with the decisive result gives the whole this result."""
    results = {matches_partly(part, known) for part in parts}
    return decisive if decisive in results else None if None in results else not decisive


@dataclass(frozen=True, slots=True)
class ConditionTrace:
    """The result of one condition.

    Attributes:
        path: a JSON Pointer into the rule's conditions.
        operator: the operator of a test, or ``all``, ``any``, ``not``.
        key, operand: of a test; else None.
        value: the request's value that a test compared.
        parts: the traces of the conditions in ``all``, ``any`` or ``not``.
    """

    path: str
    matched: bool
    operator: str
    key: str | None = None
    operand: Operand | None = None
    value: Value = None
    parts: tuple[ConditionTrace, ...] = ()


def trace(condition: Condition, request: Request) -> ConditionTrace:
    """Evaluate a condition and all its parts, even if they do not affect the result.

    Raises:
        TooCostly, CallerGone: see `check_work`.
    """
    check_work()
    match condition:
        case Test():
            value = request.get(condition.key.name)
            return ConditionTrace(
                join_pointer(condition.path),
                matches_value(condition, value),
                condition.operator.value,
                key=condition.key.name,
                operand=condition.operand,
                value=value,
            )
        case All():
            parts = tuple(trace(part, request) for part in condition.parts)
            return ConditionTrace(
                join_pointer(condition.path), all(part.matched for part in parts), "all", parts=parts
            )
        case AnyOf():
            parts = tuple(trace(part, request) for part in condition.parts)
            return ConditionTrace(
                join_pointer(condition.path), any(part.matched for part in parts), "any", parts=parts
            )
        case Not():
            inner = trace(condition.part, request)
            return ConditionTrace(join_pointer(condition.path), not inner.matched, "not", parts=(inner,))


def matches_value(test: Test, value: Value) -> bool:
    """Evaluate one test for one value."""
    if value is None:
        return _matches_null(test)
    if not test.ignore_case:
        return _PREDICATES[test.operator](test, value)
    if isinstance(value, str):
        value = fold_case(value)
    elif isinstance(value, frozenset):
        value = frozenset(fold_case(name) for name in value)
    return _PREDICATES[test.operator](fold_operand(test), value)


def fold_operand(test: Test) -> Test:
    """Return a test that ignores case with folded operands.

    Patterns of ``regex`` are not changed, because RE2 ignores case itself.
    """
    if test.operator is Operator.REGEX:
        return test
    operands = tuple(fold_case(value) if isinstance(value, str) else value for value in test.operands)
    operand = operands if isinstance(test.operand, tuple) else operands[0]
    return Test(test.key, test.operator, operand, ignore_case=True, path=test.path)


def _matches_null(test: Test) -> bool:
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
    return isinstance(value, frozenset) and any(_matches_a_name(pattern, value) for pattern in test.texts)


def _contains_all(test: Test, value: Present) -> bool:
    return isinstance(value, frozenset) and all(_matches_a_name(pattern, value) for pattern in test.texts)


def _matches_a_name(pattern: str, names: frozenset[str]) -> bool:
    check_work()
    return any(glob_matches(pattern, name) for name in names)


def _is_in_networks(test: Test, value: Present) -> bool:
    address = parse_address(value) if isinstance(value, str) else None
    return address is not None and any(_is_in_network(address, parse_network(text)) for text in test.texts)


def _is_in_network(address: Address, network: Network) -> bool:
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
    Operator.CIDR: _is_in_networks,
}
