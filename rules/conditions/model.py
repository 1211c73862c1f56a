"""Conditions, read: a tree of tests on keys. Values are hashable and compare by meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rules.conditions.keys import ConditionKey
    from rules.conditions.operators import Operator
    from rules.json_text import Path

Scalar: TypeAlias = str | int | float | bool
Operand: TypeAlias = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Test:
    """One operator on one key. ``path`` leads from the conditions to it and does not compare."""

    key: ConditionKey
    operator: Operator
    operand: Operand
    ignore_case: bool = False
    path: Path = field(default=(), compare=False)

    #: Not a test class, whatever the name: pytest asks.
    __test__ = False

    @property
    def operands(self) -> tuple[Scalar, ...]:
        """The operand as a tuple, a single value included."""
        return self.operand if isinstance(self.operand, tuple) else (self.operand,)

    @property
    def text(self) -> str:
        """The operand of an operator that takes one text."""
        assert isinstance(self.operand, str)  # noqa: S101 - narrows what the parser has checked
        return self.operand

    @property
    def texts(self) -> tuple[str, ...]:
        """The operands of an operator that takes texts."""
        return tuple(value for value in self.operands if isinstance(value, str))


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds; true when there is none."""

    parts: tuple[Condition, ...]
    path: Path = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds; false when there is none."""

    parts: tuple[Condition, ...]
    path: Path = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Condition
    path: Path = field(default=(), compare=False)


Condition: TypeAlias = Test | All | AnyOf | Not


def iterate_tests(condition: Condition, *, negated: bool = False) -> Iterator[tuple[Test, bool]]:
    """Yield every test in document order, and whether an odd number of ``not`` stands around it."""
    match condition:
        case Test():
            yield condition, negated
        case Not():
            yield from iterate_tests(condition.part, negated=not negated)
        case All() | AnyOf():
            for part in condition.parts:
                yield from iterate_tests(part, negated=negated)
