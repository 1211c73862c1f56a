"""Options of caching: the requests, the lifetime, and the rule that invalidates the results."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from analytics.advice.invalidation import MAX_TABLES, Invalidator
from analytics.advice.proposal import TTLS
from analytics.advice.requests import NO_RULE, ByTable
from analytics.advice.saving import Saving, find_saving
from analytics.replay.chain import Lifetime
from rules.conditions import parse_conditions
from rules.conditions.patterns import fold_case, glob_matches
from rules.tables.names import is_any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from analytics.advice.proposal import Current
    from analytics.advice.requests import Series, Statement

MAX_SCOPES: Final = 400
#: The number of single statements that are tried as a scope, by warehouse time.
MAX_STATEMENTS: Final = 20

_BASE: Final[Mapping[str, Any]] = {"isReadOnly": True, "hasNonDeterministicFunctions": False}
_BASE_CONDITION: Final = parse_conditions(_BASE)


@dataclass(frozen=True, eq=False)
class Scope:
    """The requests that one new rule would cache: a table, a schema or one statement."""

    name: str
    conditions: Mapping[str, Any]
    statements: tuple[Statement, ...]
    is_statement: bool = False


@dataclass(frozen=True, eq=False)
class Option:
    """A scope with a lifetime, with or without an invalidator. ``savings`` are by statement number."""

    scope: Scope
    ttl_seconds: int
    invalidator: Invalidator | None
    savings: Mapping[int, Saving]

    @property
    def rules(self) -> int:
        """The number of rules that it adds."""
        return 1 + (self.invalidator is not None and self.invalidator.is_new)

    @property
    def lifetime(self) -> Lifetime:
        """The lifetime of the results."""
        return Lifetime(
            1000 * self.ttl_seconds, 0, () if self.invalidator is None else self.invalidator.times
        )

    @cached_property
    def saving(self) -> Saving:
        """The sum of its savings, if no other option is chosen."""
        total = Saving()
        for saving in self.savings.values():
            total = total.plus(saving)
        return total


def find_options(current: Current) -> Iterator[Option]:
    """Yield every scope with every lifetime. If its tables change, yield it with an invalidator too."""
    requests = current.requests
    by_statement: dict[int, list[Series]] = defaultdict(list)
    for series in current.series_of(NO_RULE):
        by_statement[series.statement.number].append(series)
    # Without an invalidator, the saving of a statement is the same in every scope.
    never_invalidated: dict[tuple[int, int], Saving] = {}
    for scope in find_scopes(current):
        changed = requests.changed_by(scope.statements)
        writes = [write for write, _ in requests.writes_to(changed)]
        invalidator = Invalidator(current, writes, changed) if changed else None
        for ttl in TTLS:
            lifetime = Lifetime(1000 * ttl, 0, ())
            savings = {}
            for statement in scope.statements:
                key = (statement.number, ttl)
                if key not in never_invalidated:
                    never_invalidated[key] = find_saving(current, by_statement[statement.number], lifetime)
                savings[statement.number] = never_invalidated[key]
            yield Option(scope, ttl, None, savings)
            if invalidator is not None:
                lifetime = Lifetime(1000 * ttl, 0, invalidator.times)
                savings = {
                    statement.number: find_saving(current, by_statement[statement.number], lifetime)
                    for statement in scope.statements
                }
                yield Option(scope, ttl, invalidator, savings)


def find_scopes(current: Current) -> list[Scope]:
    """Return the scopes without statements that depend on who asks or when, the most warehouse time first."""
    spent: dict[int, int] = defaultdict(int)
    statements: dict[int, Statement] = {}
    for series in current.series_of(NO_RULE):
        statement = series.statement
        if is_candidate(statement):
            spent[statement.number] += sum(series.works)
            statements[statement.number] = statement
    by_table = ByTable(statements.values())
    names = {name for statement in statements.values() for name in statement.names}
    schemas = {f"{name.rpartition('.')[0]}.*" for name in names if "." in name}
    sharing = _Sharing(current, names)
    scopes = [
        sharing.narrow(
            Scope(pattern, {**_BASE, "tables": {"containsAny": [pattern]}}, tuple(by_table.find(pattern)))
        )
        for pattern in sorted(names | schemas)
    ]
    by_text: dict[str, list[Statement]] = defaultdict(list)
    for number in sorted(statements):
        by_text[statements[number].text].append(statements[number])
    by_cost = sorted(statements.values(), key=lambda statement: (-spent[statement.number], statement.number))
    scopes += [
        sharing.narrow(
            Scope(text, {**_BASE, "standardizedSql": text}, tuple(by_text[text]), is_statement=True)
        )
        for text in (statement.text for statement in by_cost[:MAX_STATEMENTS])
    ]
    scopes.sort(
        key=lambda scope: (
            -sum(spent[statement.number] for statement in scope.statements),
            scope.is_statement,
            scope.name.endswith("*"),
            scope.name,
        )
    )
    # Several scopes may cover the same statements. Keep the first.
    first_by_statements = {scope.statements: scope for scope in reversed(scopes)}
    return [
        scope
        for scope in scopes
        if first_by_statements[scope.statements] is scope
        and not any(statement.word or statement.time_word for statement in scope.statements)
    ][:MAX_SCOPES]


class _Sharing:
    """The tables that differ per user, to leave them out of what all users may share.

    Args:
        names: the names of tables as the log has them.
    """

    def __init__(self, current: Current, names: Iterable[str]) -> None:
        warehouse, views = current.tables, current.requests.views
        patterns = [warehouse.pattern(text) for text in warehouse.personal]
        self._personal = frozenset(
            name
            for name in (names if patterns else ())
            if any(is_any(reached, patterns) for reached in views.reach([warehouse.read(name)]))
        )
        folded = [fold_case(text) for text in warehouse.personal]
        spelled = (
            name
            for name in sorted(self._personal)
            if not any(glob_matches(text, fold_case(name)) for text in folded)
        )
        self._excluding = [*warehouse.personal, *spelled] if patterns else []

    def narrow(self, scope: Scope) -> Scope:
        """Return the part of a scope that all users may share; the whole scope if there is none.

        Its conditions exclude the tables that differ per user in a way that lint accepts: they list the only
        table that a statement reads, or exclude those tables as they are spelled.
        """
        shared = [it for it in scope.statements if self._personal.isdisjoint(it.names)]
        if not self._excluding or not shared:
            return scope
        conditions = dict(scope.conditions)
        names = sorted({name for statement in shared for name in statement.names})
        if len(names) <= MAX_TABLES and all(len(statement.names) == 1 for statement in shared):
            conditions["tables"] = {"in": names}
        else:
            conditions["not"] = {"tables": {"containsAny": self._excluding, "ignoreCase": True}}
        return replace(scope, conditions=conditions, statements=tuple(shared))


def is_candidate(statement: Statement) -> bool:
    """Return True if a rule may cache the statement: read-only, deterministic, with known tables."""
    return bool(statement.names) and statement.fits(_BASE_CONDITION)
