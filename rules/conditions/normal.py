"""The normal form of conditions. It is used to compare what conditions mean.

``not`` is moved to the tests, nested conditions are flattened, parts that always or never match are removed,
and tests on the same key are merged. Conditions with the same normal form mean the same. Conditions with
different normal forms may mean the same, too. The normal form is never larger than the conditions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from rules.conditions.evaluate import fold_operand, matches_value
from rules.conditions.keys import Kind, Operator
from rules.conditions.model import All, AnyOf, Condition, Not, Operand, Scalar, Test

if TYPE_CHECKING:
    from rules.conditions.evaluate import Value


@dataclass(frozen=True, slots=True)
class Literal:
    """A test or a negated test."""

    test: Test
    negated: bool = False

    def accepts(self, value: Value) -> bool:
        """Return True if the literal matches a value."""
        return matches_value(self.test, value) is not self.negated

    def accepts_only(self, *, boolean: bool) -> bool:
        """Return True if the literal matches this boolean and not the other one."""
        return self.accepts(boolean) and not self.accepts(not boolean)

    @property
    def needs_value(self) -> bool:
        """True if null does not match."""
        return not self.accepts(None)


@dataclass(frozen=True, slots=True)
class Choice:
    """Matches if at least one of two or more alternatives matches."""

    alternatives: frozenset[Conjunction]


#: A conjunction matches if all its parts match. An empty conjunction always matches; None never matches.
Conjunction: TypeAlias = "frozenset[Literal | Choice]"
Normal: TypeAlias = "Conjunction | None"

ALWAYS: Final[Conjunction] = frozenset()
NEVER: Final = None

#: Maximum number of values of a key, times the number of operands of its other tests, that are compared.
_MAX_COMPARISONS: Final = 10_000


def normalize(condition: Condition, *, negated: bool = False) -> Normal:
    """Return the normal form of a condition, or of its negation."""
    match condition:
        case Test():
            return _normalize_literal(_simplify(condition), negated=negated)
        case Not():
            return normalize(condition.part, negated=not negated)
        case All() if not negated:
            return conjoin(normalize(part) for part in condition.parts)
        case AnyOf() if negated:
            return conjoin(normalize(part, negated=True) for part in condition.parts)
        case All() | AnyOf():
            return choose([normalize(part, negated=negated) for part in condition.parts])


_OPPOSITES: Final = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.IN: Operator.NOT_IN,
    Operator.NOT_IN: Operator.IN,
}
#: Operators that match every text if the operand is empty.
_EMPTY_MATCHES_ALL: Final = {Operator.CONTAINS, Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.REGEX}


def _simplify(test: Test) -> Test:
    """Return one fixed form of all tests that mean the same."""
    if test.ignore_case:
        test = fold_operand(test)
    if test.operand == "" and test.operator in _EMPTY_MATCHES_ALL:
        return Test(test.key, Operator.EXISTS, operand=True)
    match test.operator:
        case Operator.EQ | Operator.IN:
            return _simplify_list(test, one=Operator.EQ, many=Operator.IN)
        case Operator.NE | Operator.NOT_IN:
            return _simplify_list(test, one=Operator.NE, many=Operator.NOT_IN)
        case Operator.GT | Operator.GTE | Operator.LT | Operator.LTE:
            return _simplify_bound(test)
        case Operator.CONTAINS_ALL if not test.operand:
            return Test(test.key, Operator.EXISTS, operand=True)
        case Operator.CONTAINS_ANY | Operator.CIDR if not test.operand:
            return Test(test.key, Operator.IN, operand=())
        case Operator.CONTAINS_ALL | Operator.CONTAINS_ANY | Operator.CIDR:
            patterns = tuple(sorted(set(test.texts)))
            # With a single pattern, containsAll and containsAny mean the same.
            is_any = test.operator is Operator.CONTAINS_ALL and len(patterns) == 1
            return _rewrite(test, Operator.CONTAINS_ANY if is_any else test.operator, patterns)
        case _:
            return test


def _rewrite(test: Test, operator: Operator, operand: Operand) -> Test:
    return Test(test.key, operator, operand, test.ignore_case)


def _simplify_list(test: Test, *, one: Operator, many: Operator) -> Test:
    # All numeric columns are integers, so a fraction never matches.
    values = {value for value in test.operands if not isinstance(value, float)}
    if test.key.kind is Kind.BOOL and len(values) == len((True, False)):
        return Test(test.key, Operator.EXISTS, operand=many is Operator.IN)
    if len(values) == 1:
        return test if test.operator is one else _rewrite(test, one, next(iter(values)))
    return _rewrite(test, many, tuple(sorted(values, key=lambda value: (str(value), value))))


def _simplify_bound(test: Test) -> Test:
    """Return a bound as ``gte`` or ``lte`` with an integer."""
    bound = test.operand
    assert isinstance(bound, int | float)  # noqa: S101 - for mypy; the parser has checked it
    match test.operator:
        case Operator.GT:
            return _rewrite(test, Operator.GTE, math.floor(bound) + 1)
        case Operator.LT:
            return _rewrite(test, Operator.LTE, math.ceil(bound) - 1)
        case Operator.GTE:
            return _rewrite(test, test.operator, math.ceil(bound))
        case _:
            return _rewrite(test, test.operator, math.floor(bound))


def _normalize_literal(test: Test, *, negated: bool) -> Normal:
    if negated and (opposite := _OPPOSITES.get(test.operator)) is not None:
        test, negated = _rewrite(test, opposite, test.operand), False
    elif negated and test.operator is Operator.EXISTS:
        test, negated = _rewrite(test, test.operator, not test.operand), False
    if test.operand == ():
        return ALWAYS if (test.operator is Operator.NOT_IN) is not negated else NEVER
    return frozenset({Literal(test, negated)})


def conjoin(parts: Iterable[Normal]) -> Normal:
    """Return the conjunction of all parts."""
    literals_and_choices: set[Literal | Choice] = set()
    for part in parts:
        if part is NEVER:
            return NEVER
        literals_and_choices |= part
    return _merge(literals_and_choices)


def choose(alternatives: list[Normal]) -> Normal:
    """Return the disjunction of all alternatives."""
    possible = {alternative for alternative in alternatives if alternative is not NEVER}
    if ALWAYS in possible:
        return ALWAYS
    flat: set[Conjunction] = set()
    for alternative in possible:
        nested = next(iter(alternative)) if len(alternative) == 1 else None
        if isinstance(nested, Choice):
            flat |= nested.alternatives
        else:
            flat.add(alternative)
    singles = [part for alternative in flat if (part := _single_literal(alternative)) is not None]
    if singles and conjoin(_negate(part) for part in singles) is NEVER:
        # Every value matches at least one of them.
        return ALWAYS
    flat = _merge_values(flat)
    if len(flat) == 1:
        return next(iter(flat))
    return frozenset({Choice(frozenset(flat))}) if flat else NEVER


def _single_literal(conjunction: Conjunction) -> Literal | None:
    part = next(iter(conjunction)) if len(conjunction) == 1 else None
    return part if isinstance(part, Literal) else None


def _negate(literal: Literal) -> Normal:
    return _normalize_literal(literal.test, negated=not literal.negated)


def _merge_values(alternatives: set[Conjunction]) -> set[Conjunction]:
    """Replace "a or b" on the same key by "in [a, b]"."""
    merged: set[Conjunction] = set()
    values: dict[tuple[str, bool], tuple[Test, set[Scalar]]] = {}
    for alternative in alternatives:
        part = _single_literal(alternative)
        if part is not None and part.test.operator in {Operator.EQ, Operator.IN}:
            _, operands = values.setdefault((part.test.key.name, part.test.ignore_case), (part.test, set()))
            operands.update(part.test.operands)
        else:
            merged.add(alternative)
    for test, operands in values.values():
        membership = _merge({Literal(_simplify(_rewrite(test, Operator.IN, tuple(operands))))})
        if membership is not NEVER:
            merged.add(membership)
    return merged


def _merge(parts: set[Literal | Choice]) -> Normal:
    """Merge the tests on each key."""
    by_key: dict[str, list[Literal]] = {}
    merged: set[Literal | Choice] = set()
    for part in parts:
        if isinstance(part, Literal):
            by_key.setdefault(part.test.key.name, []).append(part)
        else:
            merged.add(part)
    if len(by_key) + len(merged) == len(parts):
        return frozenset(parts)
    for literals in by_key.values():
        kept = _merge_key(literals)
        if kept is NEVER:
            return NEVER
        merged.update(kept)
    return frozenset(merged)


def _merge_key(literals: list[Literal]) -> list[Literal] | None:
    """Merge the tests on one key. Return None if no value matches all of them."""
    key = literals[0].test.key
    if len(literals) == 1:
        return literals
    if key.kind is Kind.BOOL:
        return _merge_boolean(literals)
    present = set(literals)
    if any(_opposite(literal) in present for literal in literals):
        return None
    needs_value = [literal.needs_value for literal in literals]
    if Literal(Test(key, Operator.EXISTS, operand=False)) in present:
        # Only null is left. It matches all tests that do not need a value.
        return None if any(needs_value) else [Literal(Test(key, Operator.EXISTS, operand=False))]
    if sum(needs_value) > 1:
        literals = [literal for literal in literals if literal.test.operator is not Operator.EXISTS]
    if _bounds_exclude(literals) or _affixes_exclude(literals):
        return None
    return _merge_values_of_key(literals)


def _merge_values_of_key(literals: list[Literal]) -> list[Literal] | None:
    """If a test lists values, replace all tests by the listed values that match all of them."""
    lists = [literal.test for literal in literals if _has_exact_operator(literal, Operator.EQ, Operator.IN)]
    if not lists:
        return literals
    values = set.intersection(*(set(test.operands) for test in lists))
    others = []
    for literal in literals:
        if _has_exact_operator(literal, Operator.NE, Operator.NOT_IN):
            values.difference_update(literal.test.operands)
        elif not _has_exact_operator(literal, Operator.EQ, Operator.IN):
            others.append(literal)
    if len(values) * sum(len(literal.test.operands) for literal in others) > _MAX_COMPARISONS:
        return literals
    matching = [value for value in values if all(_accepts_operand(literal, value) for literal in others)]
    if not matching:
        return None
    return [Literal(_simplify(_rewrite(lists[0], Operator.IN, tuple(matching))))]


def _merge_boolean(literals: list[Literal]) -> list[Literal] | None:
    """Merge the tests on a boolean key by trying all its values: true, false and null."""
    key = literals[0].test.key
    values = (True, False, None)
    matching = frozenset(value for value in values if all(literal.accepts(value) for literal in literals))
    if not matching:
        return None
    if len(matching) == len(values):
        return []
    operator, operand = {
        frozenset({True}): (Operator.EQ, True),
        frozenset({False}): (Operator.EQ, False),
        frozenset({None}): (Operator.EXISTS, False),
        frozenset({True, False}): (Operator.EXISTS, True),
        frozenset({True, None}): (Operator.NE, False),
        frozenset({False, None}): (Operator.NE, True),
    }[matching]
    return [Literal(Test(key, operator, operand))]


def _opposite(literal: Literal) -> Literal | None:
    return _single_literal(_negate(literal) or ALWAYS)


def _has_exact_operator(literal: Literal, *operators: Operator) -> bool:
    """Return True if the literal has one of the operators, is not negated and does not ignore case."""
    return literal.test.operator in operators and not literal.negated and not literal.test.ignore_case


def _accepts_operand(literal: Literal, value: Scalar) -> bool:
    return literal.accepts(as_value(literal.test, value))


def as_value(test: Test, operand: Scalar) -> Value:
    """Return the value of the key that equals an operand of the test."""
    if test.key.kind is Kind.TABLES and isinstance(operand, str):
        return frozenset({operand})
    return int(operand) if isinstance(operand, float) else operand


def _bounds_exclude(literals: list[Literal]) -> bool:
    lowest, highest = -math.inf, math.inf
    for literal in literals:
        bound = literal.test.operand
        if literal.negated or not isinstance(bound, int):
            continue
        if literal.test.operator is Operator.GTE:
            lowest = max(lowest, bound)
        elif literal.test.operator is Operator.LTE:
            highest = min(highest, bound)
    return lowest > highest


def _affixes_exclude(literals: list[Literal]) -> bool:
    """Return True if no text can have all the required beginnings or endings."""
    for operator, has_affix in ((Operator.STARTS_WITH, str.startswith), (Operator.ENDS_WITH, str.endswith)):
        affixes = [
            literal.test.text
            for literal in literals
            if literal.test.operator is operator and not literal.negated and not literal.test.ignore_case
        ]
        longest = max(affixes, key=len, default="")
        if not all(has_affix(longest, affix) for affix in affixes):
            return True
    return False
