"""``cache``: cache requests that no rule decides and that repeat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from analytics.advice.estimate import NO_RULE, ByTable, Saving, find_saving
from analytics.advice.proposal import (
    MAX_TABLES,
    TTLS,
    Invalidator,
    Kind,
    Proposal,
    RuleEdit,
    Variant,
    changes_evidence,
    new_rule_id,
    statements_evidence,
)
from analytics.advice.words import describe_seconds
from analytics.replay.play import Lifetime
from logs.definitions import PASSED
from rules.conditions import parse_conditions
from rules.conditions.patterns import fold_case, glob_matches
from rules.dialects.text import WITHOUT_SCHEMA
from rules.language import complete_rule
from rules.tables.names import is_any
from tenantadmin.lib.core.formats import count
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from analytics.advice.estimate import Series, Statement
    from analytics.advice.proposal import Current

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

    @cached_property
    def numbers(self) -> frozenset[int]:
        """The numbers of its statements."""
        return frozenset(statement.number for statement in self.statements)


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

    @cache
    def save(number: int, ttl: int) -> Saving:
        """Without an invalidator, the saving of a statement is the same in every scope."""
        return find_saving(requests, by_statement[number], Lifetime(1000 * ttl, 0, ()))

    for scope in find_scopes(current):
        changed = requests.changed_by(scope.statements)
        writes = [write for write, _ in requests.writes_to(changed)]
        invalidator = Invalidator(current, writes, changed) if changed else None
        for ttl in TTLS:
            yield Option(scope, ttl, None, {number: save(number, ttl) for number in scope.numbers})
            if invalidator is not None:
                lifetime = Lifetime(1000 * ttl, 0, invalidator.times)
                savings = {
                    number: find_saving(requests, by_statement[number], lifetime) for number in scope.numbers
                }
                yield Option(scope, ttl, invalidator, savings)


def find_scopes(current: Current) -> list[Scope]:
    """Return the scopes without statements that depend on who asks or when, the most warehouse time first."""
    spent: dict[int, int] = defaultdict(int)
    statements: dict[int, Statement] = {}
    for series in current.series_of(NO_RULE):
        statement = series.statement
        if is_candidate(statement):
            spent[statement.number] += series.spent_ms
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
    # Statements whose comments vary are loaded without them. A rule for that text would match no request.
    joined = {text for (text,) in current.connection.execute("SELECT plain FROM free_of_comments").fetchall()}
    by_cost = sorted(statements.values(), key=lambda statement: (-spent[statement.number], statement.number))
    scopes += [
        sharing.narrow(
            Scope(text, {**_BASE, "standardizedSql": text}, tuple(by_text[text]), is_statement=True)
        )
        for text in (statement.text for statement in by_cost[:MAX_STATEMENTS])
        if text not in joined
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
        shared = [one for one in scope.statements if self._personal.isdisjoint(one.names)]
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


#: An option counts as equal to the best one if it saves less by at most this share.
_FEWER_RULES: Final = 0.02
_SHORTER_TTL: Final = 0.03


def choose(options: Sequence[Option], *, limit: int, minimum: float) -> list[tuple[Option, int]]:
    """Return at most ``limit`` options, each with the ms that it saves beyond the options before it.

    Among options that save about as much, fewer rules win (within 2 %), then a shorter lifetime (within 3 %),
    then fewer statements. So each choice saves at least 95 % of the best.

    Args:
        minimum: options that save less (in ms) are not chosen.
    """
    covered: set[int] = set()
    chosen: list[tuple[Option, int]] = []
    while len(chosen) < limit:
        values = (
            (option, sum(saving.ms for number, saving in option.savings.items() if number not in covered))
            for option in options
        )
        candidates = [(option, value) for option, value in values if value >= minimum]
        if not candidates:
            break
        chosen.append(_choose_one(candidates))
        covered |= chosen[-1][0].scope.numbers
    return chosen


def _choose_one(candidates: Sequence[tuple[Option, int]]) -> tuple[Option, int]:
    best = max(value for _, value in candidates)
    fewest = min(option.rules for option, value in candidates if value >= (1 - _FEWER_RULES) * best)
    simple = [(option, value) for option, value in candidates if option.rules == fewest]
    best = max(value for _, value in simple)
    return min(
        ((option, value) for option, value in simple if value >= (1 - _SHORTER_TTL) * best),
        key=lambda pair: (
            pair[0].ttl_seconds,
            -pair[1],
            len(pair[0].scope.statements),
            pair[0].scope.name,
        ),
    )


MAX_PROPOSALS: Final = 5
#: Fewer hits in the whole window may be chance.
MIN_HITS: Final = 10
#: The caveat of proposals to share results, where the tenant does not say which tables differ per user.
SECURITY_INVISIBLE: Final = "row-level-security-invisible"


class Considered(JsonStruct):
    scopes: Count
    options: Annotated[
        Count, Meta(description="Scopes with lifetimes, with and without an invalidating rule.")
    ]


@dataclass(frozen=True, slots=True)
class CacheProposals:
    """The proposals, and the options that they were chosen from.

    Attributes:
        options: all options, in order.
        covered: the numbers of the statements that a proposal covers.
    """

    proposals: Sequence[Proposal]
    options: Sequence[Option]
    covered: frozenset[int]

    @property
    def considered(self) -> Considered:
        scopes = {option.scope for option in self.options}
        return Considered(scopes=len(scopes), options=len(self.options))


def propose_cache(current: Current) -> CacheProposals:
    """Propose at most `MAX_PROPOSALS`, the best first."""
    options = list(find_options(current))
    safe = [option for option in options if option.saving.is_safe and option.saving.high.hits >= MIN_HITS]
    proposals = []
    covered: set[int] = set()
    taken: set[str] = set()
    for option, value in choose(safe, limit=MAX_PROPOSALS, minimum=current.least_ms):
        proposal = propose_option(current, option, value, taken)
        if proposal is not None:
            proposals.append(proposal)
            covered |= option.scope.numbers
            taken |= {edit.rule_id for edit in proposal.edits if edit.op == "insert"}
    return CacheProposals(proposals, options, frozenset(covered))


def propose_option(current: Current, option: Option, value: int, taken: set[str]) -> Proposal | None:
    """Return the proposal to take an option, which saves ``value``; None if lint warns of its rules.

    Args:
        taken: ids that new rules may not have.
    """
    shared, keyed = (_propose_rule(current, option, value, taken, vary_by=by) for by in ([], ["userName"]))
    proposal = next((one for one in (shared, keyed) if current.is_clean(one.edits)), None)
    if proposal is not shared:
        return proposal
    caveats: tuple[str, ...] = ()
    if any(statement.names_no_schema for statement in option.scope.statements):
        caveats += (WITHOUT_SCHEMA,)
    if current.tables.per_user is None:
        return replace(shared, caveats=(SECURITY_INVISIBLE, *caveats), others=(keyed,))
    return replace(shared, caveats=caveats)


def _propose_rule(
    current: Current, option: Option, value: int, taken: set[str], *, vary_by: list[str]
) -> Proposal:
    scope = option.scope
    label = "one statement" if scope.is_statement else scope.name
    slug = f"cache-{scope.statements[0].names and min(scope.statements[0].names)}-statement"
    rule_id = new_rule_id(slug if scope.is_statement else f"cache-{scope.name}", {*current.ids, *taken})
    rule = complete_rule(
        {
            "id": rule_id,
            "name": f"Cache {label}",
            "conditions": scope.conditions,
            "ttlSeconds": option.ttl_seconds,
            "varyBy": vary_by,
        }
    )
    edits: list[RuleEdit] = [RuleEdit.insert(rule)]
    evidence = [statements_evidence(current.days, scope.conditions, where=str(PASSED))]
    requests = count(
        sum(one.answered for one in current.series_of(NO_RULE) if one.statement.number in scope.numbers),
        "request",
    )
    why = [
        f"No rule decides {requests} of {count(len(scope.statements), 'statement')}.",
        "They only read, and call no function whose result depends on who asks or when.",
        f"Within {describe_seconds(option.ttl_seconds)}, many of them ask for the same result again.",
    ]
    if vary_by and current.tables.per_user is None:
        why.append("Each user gets results of their own, whatever rows the warehouse shows them.")
    elif vary_by:
        why.append("They can read tables that differ per user, so each user gets results of their own.")
    elif current.tables.personal:
        why.append("None of them reads a table that differs per user, so all users can share the results.")
    elif current.tables.per_user is None:
        why.append(
            "All users would share them. If the warehouse shows each user other rows or columns, which no "
            "statement tells, let the rule vary by userName; warehouse.perUserTables names such tables."
        )
    if option.invalidator is not None:
        edits.append(
            option.invalidator.edit(rule_id, name=f"Changes make {label} stale", taken={*taken, rule_id})
        )
        evidence.append(changes_evidence(current.days, option.invalidator.tables))
        why.append(
            f"{', '.join(option.invalidator.tables)} changed {len(option.invalidator.times)} times: each "
            "change ends the results that were cached before."
        )
    elif any(current.requests.changes_of(statement) for statement in scope.statements):
        why.append("Its tables change so rarely that fewer than 1% of hits would be at risk.")
    else:
        why.append("No statement in the log changes its tables.")
    return Proposal(
        Kind.CACHE,
        scope.name,
        f"Cache {label} {'per user ' if vary_by else ''}for {describe_seconds(option.ttl_seconds)}",
        tuple(why),
        tuple(edits),
        tuple(evidence),
        estimate=value,
        variant=Variant.PER_USER if vary_by else Variant.SHARED,
    )
