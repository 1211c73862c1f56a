"""Conditions as a tree of tests on keys, read from rules that have passed lint. Equal nodes mean the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from rules.conditions.keys import (
    CONDITION_KEYS,
    IGNORE_CASE,
    MAX_DEPTH,
    OPERATORS,
    ConditionKey,
    Operator,
    find_operator,
    find_wrong_elements,
)
from rules.json_text import has_forbidden_characters, is_array, is_object, join_pointer

if TYPE_CHECKING:
    from rules.conditions.keys import ConditionKey
    from rules.json_text import Path

Scalar: TypeAlias = str | int | float | bool

Operand: TypeAlias = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Test:
    """One operator on one key. ``path`` is its path in the conditions; it is ignored in comparisons."""

    key: ConditionKey
    operator: Operator
    operand: Operand
    ignore_case: bool = False
    path: Path = field(default=(), compare=False)

    #: Tells pytest that this is not a test class.
    __test__ = False

    @property
    def operands(self) -> tuple[Scalar, ...]:
        """The operand as a tuple. A single value becomes a tuple of one."""
        return self.operand if isinstance(self.operand, tuple) else (self.operand,)

    @property
    def text(self) -> str:
        """The operand of an operator that takes one text."""
        assert isinstance(self.operand, str)  # noqa: S101 - for mypy; the parser has checked it
        return self.operand

    @property
    def texts(self) -> tuple[str, ...]:
        """The operands of an operator that takes texts."""
        return tuple(value for value in self.operands if isinstance(value, str))


@dataclass(frozen=True, slots=True)
class All:
    """Matches if all parts match, also if there are no parts."""

    parts: tuple[Condition, ...]
    path: Path = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Matches if at least one part matches."""

    parts: tuple[Condition, ...]
    path: Path = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """Matches if the part does not match."""

    part: Condition
    path: Path = field(default=(), compare=False)


Condition: TypeAlias = Test | All | AnyOf | Not


def iterate_tests(condition: Condition, *, negated: bool = False) -> Iterator[tuple[Test, bool]]:
    """Yield every test in document order, with True if it is inside an odd number of ``not``."""
    match condition:
        case Test():
            yield condition, negated
        case Not():
            yield from iterate_tests(condition.part, negated=not negated)
        case All() | AnyOf():
            for part in condition.parts:
                yield from iterate_tests(part, negated=negated)


class InvalidConditions(ValueError):
    """Conditions that lint would refuse. The message names the place as a JSON Pointer."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{join_pointer(path) or 'the conditions'}: {problem}")


def parse_conditions(document: Mapping[str, object]) -> All:
    """Read a ``conditions`` object. An empty one matches every request.

    Raises:
        InvalidConditions: the conditions have not passed lint. It names only the first problem.
    """
    return _parse_object(document, path=(), depth=0)


def _parse_object(document: object, *, path: Path, depth: int) -> All:
    if not is_object(document):
        raise InvalidConditions(path, "must be an object")
    if depth > MAX_DEPTH:
        raise InvalidConditions(path, f"nests deeper than {MAX_DEPTH} levels")
    parts: list[Condition] = []
    for name, value in document.items():
        here = (*path, name)
        if name in {"all", "any"}:
            if not is_array(value):
                raise InvalidConditions(here, "must be an array")
            inner = tuple(
                _parse_object(element, path=(*here, index), depth=depth + 1)
                for index, element in enumerate(value)
            )
            parts.append(All(inner, here) if name == "all" else AnyOf(inner, here))
        elif name == "not":
            parts.append(Not(_parse_object(value, path=here, depth=depth + 1), here))
        elif (key := CONDITION_KEYS.get(name)) is not None:
            parts.extend(_parse_tests(key, value, path=here))
        else:
            raise InvalidConditions(here, "is not a condition key")
    return All(tuple(parts), path)


def _parse_tests(key: ConditionKey, value: object, *, path: Path) -> Iterator[Test]:
    if not is_object(value):
        yield _parse_test(key, Operator.EQ, value, ignore_case=False, path=path)
        return
    ignore_case = value.get(IGNORE_CASE, False)
    if not isinstance(ignore_case, bool) or (ignore_case and not key.is_textual):
        raise InvalidConditions((*path, IGNORE_CASE), "must be a boolean, on a text key")
    for name, operand in value.items():
        if name == IGNORE_CASE:
            continue
        operator = find_operator(name)
        if operator is None:
            raise InvalidConditions((*path, name), "is not an operator")
        yield _parse_test(key, operator, operand, ignore_case=ignore_case, path=(*path, name))


#: Operators that ``ignoreCase`` does not affect.
CASELESS: Final = frozenset({Operator.EXISTS, Operator.CIDR})


def _parse_test(
    key: ConditionKey, operator: Operator, operand: object, *, ignore_case: bool, path: Path
) -> Test:
    if key.kind not in OPERATORS[operator].kinds:
        raise InvalidConditions(path, f"does not fit {key.name}")
    if find_wrong_elements(key, operator, operand) != []:
        raise InvalidConditions(path, "has an operand of the wrong type")
    values = _freeze(operand)
    for value in values if isinstance(values, tuple) else (values,):
        if isinstance(value, str) and has_forbidden_characters(value):
            raise InvalidConditions(path, "contains NUL or an unpaired surrogate")
    return Test(key, operator, values, ignore_case and operator not in CASELESS, path)


def _freeze(operand: object) -> Operand:
    if is_array(operand):
        return tuple(_freeze_scalar(element) for element in operand)
    return _freeze_scalar(operand)


def _freeze_scalar(value: object) -> Scalar:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} is not a scalar")
