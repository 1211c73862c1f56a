"""Find, for each rule, an earlier rule that matches everything that it matches.

Not all pairs of rules are compared: an index finds the candidates. If one rule is wider than another, both
have something in common, such as a value, a table pattern or a key. So each rule is put into the index under
the terms that a narrower rule must have, and a later rule is only compared with rules that it finds under its
own terms. The search is limited; it tells for which conditions it gave up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from rules.conditions.implication import implies
from rules.conditions.keys import Operator
from rules.conditions.normal import Choice, Literal

if TYPE_CHECKING:
    from rules.conditions.normal import Conjunction, Normal

#: Maximum number of pairs of operands that are compared for one rule.
_MAX_STEPS: Final = 4_000

#: Maximum number of parts of a table name for which wider patterns are looked up.
_MAX_PARTS: Final = 8

_EVERYTHING: Final = ("everything",)
_UNUSUAL: Final = ("unusual pattern",)


def find_wider(
    conjunctions: Sequence[Normal], *, is_late: Callable[[], bool] = lambda: False
) -> tuple[list[int | None], list[int]]:
    """Return for each condition the index of an earlier one that matches all that it matches, or None.

    A condition that never matches is None. It is not compared. The second list has the indexes of
    conditions that were not compared with all earlier ones, because there were too many or it was late.
    """
    search = _Search(conjunctions, is_late)
    wider = [
        None if conjunction is None else search.find_or_add(index, conjunction)
        for index, conjunction in enumerate(conjunctions)
    ]
    return wider, search.incomplete


class _Search:
    def __init__(self, conjunctions: Sequence[Normal], is_late: Callable[[], bool]) -> None:
        self.incomplete: list[int] = []
        self._conjunctions = conjunctions
        self._is_late = is_late
        self._sizes = [_count_operands(conjunction) for conjunction in conjunctions]
        self._lookup_terms = [
            [] if conjunction is None else list(dict.fromkeys(_lookup_terms(conjunction)))
            for conjunction in conjunctions
        ]
        # The more conditions look up a term, the more comparisons an entry under it causes.
        self._lookup_counts = Counter(chain.from_iterable(self._lookup_terms))
        self._first: dict[Conjunction, int] = {}
        self._index: dict[Hashable, list[int]] = {}

    def find_or_add(self, index: int, conjunction: Conjunction) -> int | None:
        """Return an earlier condition that is as wide or wider, or add this one to the index."""
        equal = self._first.setdefault(conjunction, index)
        if equal != index:
            return equal
        if self._is_late():
            self.incomplete.append(index)
            return None
        wider = self._find(index, conjunction)
        # A condition with a wider one need not be in the index: the wider one covers all that it covers.
        if wider is None:
            for term in _choose_terms(conjunction, self._lookup_counts):
                self._index.setdefault(term, []).append(index)
        return wider

    def _find(self, index: int, narrow: Conjunction) -> int | None:
        steps = 0
        seen: set[int] = set()
        for candidate in chain.from_iterable(self._index.get(term, ()) for term in self._lookup_terms[index]):
            if candidate in seen:
                continue
            seen.add(candidate)
            steps += self._sizes[index] * self._sizes[candidate]
            if steps > _MAX_STEPS:
                self.incomplete.append(index)
                return None
            wide = self._conjunctions[candidate]
            if wide is not None and implies(narrow, wide):
                return candidate
        return None


def _count_operands(conjunction: Normal) -> int:
    """Return the number of operands in a condition, plus one."""
    if conjunction is None:
        return 0
    return 1 + sum(
        len(part.test.operands)
        if isinstance(part, Literal)
        else sum(_count_operands(alternative) for alternative in part.alternatives)
        for part in conjunction
    )


def _choose_terms(conjunction: Conjunction, lookup_counts: Counter[Hashable]) -> list[Hashable]:
    """Return the index terms of the part of a condition whose terms are looked up least often."""
    by_part = [list(_index_terms(part)) for part in conjunction]
    return min(by_part, key=lambda terms: sum(lookup_counts[term] for term in terms), default=[_EVERYTHING])


def _index_terms(part: Literal | Choice) -> Iterator[Hashable]:
    """Yield index terms for a part of a condition. A condition that implies the part looks up one of them."""
    if isinstance(part, Choice):
        yield "is", part
        for alternative in part.alternatives:
            yield from min((list(_index_terms(inner)) for inner in alternative), key=len)
        return
    test, key = part.test, part.test.key.name
    if _lists_values(part):
        yield from (("value", key, value) for value in test.operands)
        return
    yield "listed", key
    if part.negated:
        yield "is", part
        return
    match test.operator:
        case Operator.NE | Operator.NOT_IN:
            yield from (("not", key, test.operands[0]), ("positive", key))
        case Operator.EXISTS if test.operand is True:
            yield "positive", key
        case Operator.CONTAINS_ANY:
            yield from (("table", pattern) if _is_usual(pattern) else _UNUSUAL for pattern in test.texts)
        case Operator.CONTAINS_ALL:
            yield ("table", test.texts[0]) if _is_usual(test.texts[0]) else _UNUSUAL
        case operator if operator in _FAMILIES:
            yield _FAMILIES[operator], key
        case _:
            yield "is", part


def _lookup_terms(narrow: Conjunction) -> Iterator[Hashable]:
    """Yield the terms that a condition looks up: at least one index term of every part that it implies."""
    yield _EVERYTHING
    for part in narrow:
        if isinstance(part, Choice) or part.negated:
            yield "is", part
        else:
            yield from _lookup_terms_of_test(part)


def _lookup_terms_of_test(literal: Literal) -> Iterator[Hashable]:
    test, key = literal.test, literal.test.key.name
    if literal.needs_value:
        yield "positive", key
    if _lists_values(literal):
        # A wider list has all of the values, so it is found by the first one.
        yield from (("value", key, test.operands[0]), ("listed", key))
        return
    match test.operator:
        case Operator.EXISTS if test.operand is False:
            yield "listed", key
        case Operator.NE | Operator.NOT_IN:
            yield from (("not", key, value) for value in test.operands)
        case Operator.CONTAINS_ANY:
            yield from _lookup_terms_of_tables(test.texts[:1])
        case Operator.CONTAINS_ALL:
            yield from _lookup_terms_of_tables(test.texts)
        case operator if operator in _FAMILIES:
            yield _FAMILIES[operator], key
        case _:
            yield "is", literal


#: Operators that may imply each other.
_FAMILIES: Final = {
    Operator.GTE: "least",
    Operator.LTE: "most",
    Operator.STARTS_WITH: "affix",
    Operator.ENDS_WITH: "affix",
    Operator.CONTAINS: "affix",
    Operator.CIDR: "network",
}


def _lists_values(part: Literal) -> bool:
    return part.test.operator in {Operator.EQ, Operator.IN} and not part.negated and not part.test.ignore_case


def _is_usual(pattern: str) -> bool:
    """Return True if `_widen` can return the pattern: it has no ``*``, or only one as its last part."""
    return pattern == "*" or "*" not in pattern.removesuffix(".*")


def _lookup_terms_of_tables(patterns: Iterable[str]) -> Iterator[Hashable]:
    yield _UNUSUAL
    for pattern in patterns:
        yield from (("table", wide) for wide in _widen(pattern))


def _widen(pattern: str) -> list[str]:
    """Return the pattern and the usual wider patterns: ``a.b.c``, ``a.b.*``, ``a.*``, ``*``."""
    parts = pattern.split(".")[:_MAX_PARTS]
    return [pattern, *(".".join([*parts[:length], "*"]) for length in range(len(parts) - 1, -1, -1))]
