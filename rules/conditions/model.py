"""Conditions as a tree of tests on keys. The nodes are hashable, and equal if they mean the same."""

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
