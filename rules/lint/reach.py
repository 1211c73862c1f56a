"""Find, for each rule, an earlier one that matches everything it can, without comparing all with all.

A rule that is wider than another must share something with it. Every rule is filed under the rarest thing
that a narrower rule has to show: a value, a table pattern, at least a key. A later rule looks only
under what it shows itself, and its search is bounded: what it does not find is not reported.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Final

from rules.conditions.implication import implies
from rules.conditions.keys import Kind
from rules.conditions.normal import Choice, Literal
from rules.conditions.operators import Operator

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from rules.conditions.normal import Conjunction, Normal

#: Pairs of operands compared, for one rule and for all, at most.
_MAX_STEPS_OF_RULE: Final = 4_000
_MAX_STEPS: Final = 2_000_000

#: Parts of a table name that are widened.
_MAX_PARTS: Final = 8

_EVERYTHING: Final = ("everything",)
_UNUSUAL: Final = ("unusual pattern",)


def find_wider(conjunctions: Sequence[Normal]) -> list[int | None]:
    """For each condition, an earlier one that matches all that it matches; None where none was seen.

    Conditions that never hold, given as None, cover nothing and are covered by nothing.
    """
    search = _Search(conjunctions)
    return [
        None if conjunction is None else search.find_and_file(index, conjunction)
        for index, conjunction in enumerate(conjunctions)
    ]


class _Search:
    def __init__(self, conjunctions: Sequence[Normal]) -> None:
        self._conjunctions = conjunctions
        self._weights = [_weigh(conjunction) for conjunction in conjunctions]
        self._shown = [
            [] if conjunction is None else list(dict.fromkeys(_shown_terms(conjunction)))
            for conjunction in conjunctions
        ]
        # How many conditions look under a term is what filing under it costs.
        self._lookups = Counter(chain.from_iterable(self._shown))
        self._first: dict[Conjunction, int] = {}
        self._filed: dict[Hashable, list[int]] = {}
        self._steps_left = _MAX_STEPS

    def find_and_file(self, index: int, conjunction: Conjunction) -> int | None:
        """Find an earlier condition that covers this one, or else file this one to cover later ones."""
        equal = self._first.setdefault(conjunction, index)
        if equal != index:
            return equal
        wider = self._find(index, conjunction)
        # What is covered covers nothing that its cover does not.
        if wider is None:
            for term in _choose_terms(conjunction, self._lookups):
                self._filed.setdefault(term, []).append(index)
        return wider

    def _find(self, index: int, narrow: Conjunction) -> int | None:
        steps = 0
        seen: set[int] = set()
        for candidate in chain.from_iterable(self._filed.get(term, ()) for term in self._shown[index]):
            if candidate in seen:
                continue
            seen.add(candidate)
            steps += self._weights[index] * self._weights[candidate]
            if steps > min(_MAX_STEPS_OF_RULE, self._steps_left):
                break
            wide = self._conjunctions[candidate]
            if wide is not None and implies(narrow, wide):
                self._steps_left -= steps
                return candidate
        self._steps_left -= min(steps, self._steps_left)
        return None


def _weigh(conjunction: Normal) -> int:
    """The operands in a condition, plus one."""
    if conjunction is None:
        return 0
    return 1 + sum(
        len(part.test.operands)
        if isinstance(part, Literal)
        else sum(_weigh(alternative) for alternative in part.alternatives)
        for part in conjunction
    )


def _choose_terms(conjunction: Conjunction, lookups: Counter[Hashable]) -> list[Hashable]:
    by_part = [list(_filing_terms(part)) for part in conjunction]
    return min(by_part, key=lambda terms: sum(lookups[term] for term in terms), default=[_EVERYTHING])


def _filing_terms(part: Literal | Choice) -> Iterator[Hashable]:
    """What a condition with this part is filed under: one that implies it shows at least one of these."""
    if isinstance(part, Choice):
        yield "is", part
        for alternative in part.alternatives:
            yield from min((list(_filing_terms(inner)) for inner in alternative), key=len)
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


def _shown_terms(narrow: Conjunction) -> Iterator[Hashable]:
    """What a condition is looked up under: something of every part that it implies."""
    yield _EVERYTHING
    for part in narrow:
        if isinstance(part, Choice) or part.negated:
            yield "is", part
        else:
            yield from _shown_by_test(part)


def _shown_by_test(literal: Literal) -> Iterator[Hashable]:
    test, key = literal.test, literal.test.key.name
    if literal.needs_value:
        yield "positive", key
    if _lists_values(literal):
        # A wider list holds every value, so the first one finds it.
        yield from (("value", key, test.operands[0]), ("listed", key))
        if test.key.kind is Kind.TABLES:
            yield from _shown_by_tables(test.texts[:1])
        return
    match test.operator:
        case Operator.EXISTS if test.operand is False:
            yield from (("listed", key), ("is", literal))
        case Operator.NE | Operator.NOT_IN:
            yield from (("not", key, value) for value in test.operands)
        case Operator.CONTAINS_ANY:
            yield from _shown_by_tables(test.texts[:1])
        case Operator.CONTAINS_ALL:
            yield from _shown_by_tables(test.texts)
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
    """Whether a pattern is found by widening names: no star, or only one in place of the last parts."""
    return pattern == "*" or "*" not in pattern.removesuffix(".*")


def _shown_by_tables(patterns: Iterable[str]) -> Iterator[Hashable]:
    yield _UNUSUAL
    for pattern in patterns:
        yield from (("table", wide) for wide in _widen(pattern))


def _widen(pattern: str) -> list[str]:
    """The pattern and the usual wider ones: ``a.b.c``, ``a.b.*``, ``a.*``, ``*``."""
    parts = pattern.split(".")[:_MAX_PARTS]
    return [pattern, *(".".join([*parts[:length], "*"]) for length in range(len(parts) - 1, -1, -1))]
