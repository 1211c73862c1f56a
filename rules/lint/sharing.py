"""Find cache rules that can serve one user's rows of a table to another user.

A rule is safe for a table if it varies by user, if its conditions exclude every statement that reads the
table, or if an earlier rule certainly decides all such statements that it matches, without sharing a result.
A condition excludes a table by its spelling, as Gateways compare it, and only if it ignores case, as
warehouses do. So each spelling in the log counts as a table of its own. The tables that a rule is for
(``eq``, ``in``) are compared in the normal form of names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from rules.conditions.implication import implies
from rules.conditions.keys import CONDITION_KEYS, Kind, Operator
from rules.conditions.model import Test
from rules.conditions.normal import Choice, Literal
from rules.conditions.patterns import fold_case
from rules.language import Action
from rules.tables.logged import LoggedNames

if TYPE_CHECKING:
    from rules.conditions.normal import Conjunction
    from rules.lint.nodes import ValidRule
    from rules.tables.names import TablePattern
    from rules.tables.warehouse import WarehouseTables

#: Maximum number of patterns that a finding names.
_MAX_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class _Table:
    """A pattern of tables or a spelling in the log, and the test for statements that read such a name.

    ``may_be`` returns True if a name in a condition is such a table or may be.
    """

    pattern: str
    may_be: Callable[[str], bool]
    reads: Literal


def find_shared(
    rules: Sequence[ValidRule], warehouse: WarehouseTables, *, is_late: Callable[[], bool] = lambda: False
) -> Iterator[tuple[ValidRule, list[str], bool]]:
    """Yield the rules that share results of tables that differ per user, with some of their patterns.

    The last value is False if there was no time to be sure. A rule that is not yielded is safe.
    """
    tables = _read(warehouse.personal, warehouse, is_late)
    safe: list[Conjunction] = []
    for rule in rules:
        if not tables:
            return
        if not rule.rule.enabled or rule.rule.action is None or rule.normal is None:
            continue
        if late := is_late():
            shared = [table.pattern for table in tables[:_MAX_NAMED]] if rule.rule.is_shared else []
        elif not rule.rule.is_shared:
            condition = _without_case(rule.normal)
            safe.append(condition)
            # No later rule decides a statement that reads one of these.
            tables = [table for table in tables if not implies(frozenset({table.reads}), condition)]
            continue
        else:
            shared, late = _find_tables(_without_case(rule.normal), tables, safe, is_late)
        if shared:
            yield rule, shared, not late


def find_deciding(
    rules: Sequence[ValidRule],
    patterns: Sequence[str],
    warehouse: WarehouseTables | None,
    *,
    actions: Collection[Action] = (Action.CACHE,),
    is_late: Callable[[], bool] = lambda: False,
) -> Iterator[ValidRule]:
    """Yield the enabled rules with such an action that can decide a statement which reads a table.

    When it is late, further rules are yielded without looking. A rule that is not yielded certainly decides
    no such statement.

    Args:
        warehouse: says what names mean. None: the patterns are the names in the statement, but for case.
    """
    tables = (
        [_Table(name, partial(_equal, name), _reading(name)) for name in patterns]
        if warehouse is None
        else _read(patterns, warehouse, is_late)
    )
    earlier: list[Conjunction] = []
    for rule in rules:
        if not tables:
            return
        if not rule.rule.enabled or rule.normal is None:
            continue
        condition = _without_case(rule.normal)
        if rule.rule.action in actions and (
            is_late() or _find_tables(condition, tables, earlier, is_late)[0]
        ):
            yield rule
        earlier.append(condition)
        tables = [table for table in tables if not implies(frozenset({table.reads}), condition)]


def _find_tables(
    condition: Conjunction, tables: Sequence[_Table], safe: Sequence[Conjunction], is_late: Callable[[], bool]
) -> tuple[list[str], bool]:
    """Return the first patterns that a rule shares, and whether there was no time for a certain answer."""
    shared: list[str] = []
    for table in tables:
        if is_late():
            return [*shared, table.pattern], True
        if _excludes(condition, table):
            continue
        narrow = condition | {table.reads}
        for wide in safe:
            if is_late():
                return [*shared, table.pattern], True
            if implies(narrow, wide):
                break
        else:
            shared.append(table.pattern)
            if len(shared) == _MAX_NAMED:
                break
    return shared, False


def _read(patterns: Iterable[str], warehouse: WarehouseTables, is_late: Callable[[], bool]) -> list[_Table]:
    """Return the patterns, then the spellings in the log that they mean or may mean and do not match."""

    def table(text: str, meant: TablePattern) -> _Table:
        return _Table(text, lambda name: meant.compare(warehouse.read(name)).counts, _reading(text))

    meant = {pattern: warehouse.pattern(pattern) for pattern in patterns}
    tables = [table(*item) for item in meant.items()]
    logged = LoggedNames(warehouse)
    for pattern, means in meant.items():
        if is_late():
            break
        tables += [table(text, means) for text in logged.find_missed(pattern, means)]
    return tables


def _equal(one: str, other: str) -> bool:
    return fold_case(one) == fold_case(other)


def _reading(pattern: str) -> Literal:
    test = Test(
        CONDITION_KEYS["tables"], Operator.CONTAINS_ANY, operand=(fold_case(pattern),), ignore_case=True
    )
    return Literal(test)


def _without_case(condition: Conjunction) -> Conjunction:
    """Return a condition in which tests on tables that name no letter ignore case, as they mean the same."""
    return frozenset(
        Choice(frozenset(_without_case(alternative) for alternative in part.alternatives))
        if isinstance(part, Choice)
        else Literal(_ignoring_case(part.test), part.negated)
        for part in condition
    )


def _ignoring_case(test: Test) -> Test:
    is_caseless = test.key.kind is Kind.TABLES and all(
        text == fold_case(text) == text.upper() for text in test.texts
    )
    if test.operator is Operator.EXISTS or not is_caseless:
        return test
    return Test(test.key, test.operator, test.operand, ignore_case=True)


def _excludes(condition: Conjunction, table: _Table) -> bool:
    """Return True if no statement that matches a condition reads such a table."""
    return any(
        all(_excludes(alternative, table) for alternative in part.alternatives)
        if isinstance(part, Choice)
        else _literal_excludes(part, table)
        for part in condition
    )


def _literal_excludes(literal: Literal, table: _Table) -> bool:
    test = literal.test
    if test.key.kind is not Kind.TABLES:
        return False
    if literal.negated:
        return implies(frozenset({table.reads}), frozenset({Literal(test)}))
    match test.operator:
        case Operator.EXISTS:
            return test.operand is False
        case Operator.EQ | Operator.IN:
            # The statement refers to exactly one of these tables.
            return not any(table.may_be(name) for name in test.texts)
        case _:
            return False
