"""Suggest what a misspelled word was meant to be, and find names that are spelled otherwise in the log.

Conditions compare text. So a rule that is to keep a table out of the cache misses its other spellings.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from rules.conditions.evaluate import matches_value
from rules.conditions.keys import Kind, Operator
from rules.conditions.model import Test, iterate_tests
from rules.language import Action
from rules.lint.sharing import find_deciding
from rules.tables.logged import LoggedNames

if TYPE_CHECKING:
    from rules.lint.nodes import ValidRule
    from rules.tables.warehouse import WarehouseTables

#: There are no suggestions for longer names.
_MAX_LENGTH: Final = 128

_SIMILARITY: Final = 0.6

#: Maximum number of names that one lint compares, to limit the time for a document of wrong names.
_MAX_COMPARISONS: Final = 20_000


def ask_nearest(nearest: str | None, *, otherwise: str = ".") -> str:
    """Return the end of a message: the question for the nearest name, or what it says without one."""
    return otherwise if nearest is None else f"; did you mean {nearest}?"


class Suggester:
    """Suggests names until the maximum number of comparisons is used up."""

    def __init__(self) -> None:
        self._comparisons_left = _MAX_COMPARISONS
        self._cache: dict[tuple[str, int, float], str | None] = {}

    def find_nearest(
        self, name: str, candidates: Collection[str], *, similarity: float | None = None
    ) -> str | None:
        """Return the candidate that is most similar to the name, without case; None if none is similar.

        ``similarity`` is from 0 to 1. Results are cached by the identity of ``candidates``: pass the same
        object for the same names.
        """
        cutoff = _SIMILARITY if similarity is None else similarity
        key = (name, id(candidates), cutoff)
        if key not in self._cache:
            self._cache[key] = self._compare(name, candidates, cutoff)
        return self._cache[key]

    def _compare(self, name: str, candidates: Collection[str], cutoff: float) -> str | None:
        if len(name) > _MAX_LENGTH or len(candidates) > self._comparisons_left:
            return None
        self._comparisons_left -= len(candidates)
        lowered = {candidate.lower(): candidate for candidate in candidates}
        nearest = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=cutoff)
        return lowered[nearest[0]] if nearest else None


#: The most spellings of a test that a finding names. One more is looked for, to say that there are more.
MAX_NAMED: Final = 3

_KEEPING_OUT: Final = frozenset({Action.BYPASS, Action.DENY})


@dataclass(frozen=True, slots=True)
class OtherSpellings:
    """Names in the log that a test of a rule does not match, each with the name in the test."""

    rule: ValidRule
    test: Test
    names: dict[str, str]

    @property
    def differ_by_case(self) -> bool:
        """True if the test would match all of them if it ignored case."""
        return all(names_table(replace(self.test, ignore_case=True), name) for name in self.names)


def names_table(test: Test, name: str) -> bool:
    """Return True if one of the texts of a test on tables matches a name."""
    return matches_value(replace(test, operator=Operator.CONTAINS_ANY, operand=test.texts), frozenset({name}))


def find_other_spellings(
    rules: Sequence[ValidRule], warehouse: WarehouseTables, *, is_late: Callable[[], bool]
) -> Iterator[OtherSpellings]:
    """Yield the tests on tables that miss a spelling in the log, in order, until it is late.

    The test is in a rule that can then decide a statement with this spelling, although it excludes the table;
    or in a bypass or deny rule that leaves such a statement to a later cache rule.
    """
    search = _Search(rules, warehouse, is_late)
    for rule in rules:
        if not rule.rule.enabled:
            continue
        for test, negated in iterate_tests(rule.condition):
            if test.key.kind is not Kind.TABLES or test.operator is Operator.EXISTS:
                continue
            excludes = negated != (test.operator in {Operator.NE, Operator.NOT_IN})
            if excludes or rule.rule.action in _KEEPING_OUT:
                names = dict(islice(search.find(rule, test, excludes=excludes), MAX_NAMED + 1))
                # When it is late, what was found is not certain.
                if is_late():
                    return
                if names:
                    yield OtherSpellings(rule, test, names)


class _Search:
    def __init__(
        self, rules: Sequence[ValidRule], warehouse: WarehouseTables, is_late: Callable[[], bool]
    ) -> None:
        self._rules, self._warehouse, self._is_late = rules, warehouse, is_late
        self._logged = LoggedNames(warehouse)
        self._deciding: dict[str, dict[int, Action | None]] = {}

    def find(self, rule: ValidRule, test: Test, *, excludes: bool) -> Iterator[tuple[str, str]]:
        """Yield the names that a test misses, with its text for the table, until it is late."""
        for text in test.texts:
            for name in self._logged.find(self._warehouse.pattern(text)):
                if self._is_late():
                    return
                if not names_table(test, name) and self._decides(rule, name, excludes=excludes):
                    yield name, text

    def _decides(self, rule: ValidRule, name: str, *, excludes: bool) -> bool:
        """Return True if the rule itself, or else a later cache rule, can decide statements with a name."""
        if name not in self._deciding:
            found = find_deciding(self._rules, [name], None, actions=[*Action], is_late=self._is_late)
            self._deciding[name] = {finding.rule.index: finding.rule.action for finding in found}
        deciding, own = self._deciding[name], rule.rule.index
        if excludes:
            return own in deciding
        return any(action is Action.CACHE and index > own for index, action in deciding.items())
