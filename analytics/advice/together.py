"""Replay several changed rulesets at once, and of each only what differs from the current one.

What the cache gives to the requests of a rule depends on these requests, the rule's lifetime and its markers.
A rule for which all this is as before keeps its counts. Only the requests of other rules are replayed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from analytics.replay.bounds import find_bounds, find_position, groups_table
from analytics.replay.counts import Counts, count_by, count_by_index
from analytics.replay.gateway import either, find_other_gateways, find_what_matters
from analytics.replay.outcome import decide_requests, make_lifetimes, play_decided
from analytics.replay.shapes import (
    NO_RULE,
    decide_each,
    decision_row,
    is_required,
    make_decision_table,
    read_shapes,
)
from rules.language import Action

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.bounds import Bounds
    from analytics.replay.chain import Lifetime
    from analytics.replay.gateway import Declines
    from analytics.replay.job import Gateway, Marker
    from analytics.replay.outcome import Outcome
    from rules.language import Rule
    from rules.match import Decision

_TABLE: Final = "changed"
#: The requests that are replayed, once for each ruleset. Their numbers stay in order.
_PLACED: Final = """
    SELECT request.* REPLACE (ruleset * (SELECT max(n) + 1 FROM request) + request.n AS n), ruleset, restart
    FROM request
    JOIN (SELECT n, restart FROM {table}) AS played USING (n)
    JOIN (SELECT ruleset, shape FROM decision) AS replayed USING (shape)
"""
#: The requests after which rules fire, if any do.
_FIRES: Final = "logged NOT IN ('ERROR', 'INVALIDATION_ERROR')"


@dataclass(frozen=True, eq=False)
class _Changed:
    """A changed ruleset.

    Attributes:
        first: the index of its first rule among those of all changed rulesets.
        replayed: the ids of the cache rules, old and new, whose requests are replayed.
        shapes: the shapes of the requests that are replayed.
        is_data_kept: the same statements change data as before.
    """

    number: int
    first: int
    rules: Sequence[Rule]
    decisions: Mapping[int, Decision]
    lifetimes: Sequence[Lifetime]
    replayed: frozenset[str]
    shapes: frozenset[int]
    is_data_kept: bool

    @property
    def no_rule(self) -> int:
        """The index of "no rule" of this ruleset."""
        return NO_RULE - self.number

    @property
    def indexes(self) -> set[int]:
        return {self.no_rule, *range(self.first, self.first + len(self.rules))}

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yield its rows of the table ``decision``."""
        indexes = {rule.id: self.first + index for index, rule in enumerate(self.rules)}
        for shape in sorted(self.shapes):
            decision = self.decisions[shape]
            rule = self.no_rule if decision.rule_id is None else indexes[decision.rule_id]
            yield decision_row(self.number, shape, decision, rule=rule)


@dataclass(frozen=True, slots=True)
class _Part:
    """The counts of what was replayed, by the index of the rule. ``groups`` is the table of its groups."""

    counts: Mapping[int, Counter[str]]
    bounds: Bounds
    groups: str


class Together:
    """The current ruleset, and what other rulesets would do instead."""

    def __init__(
        self,
        connection: DuckDBPyConnection,
        outcome: Outcome,
        runs: Sequence[Counts],
        *,
        gateway: Gateway,
        markers: Sequence[Marker],
    ) -> None:
        """Look into the current ruleset.

        Args:
            outcome: that of the current ruleset alone. Its table must stay.
            runs: its counts under everything that the Gateway may do.
            markers: those that people made.
        """
        self._connection, self._gateway, self._markers = connection, gateway, markers
        self._table, self._rules, self._counts = outcome.table, outcome.decisions.rules, runs
        self._lifetimes = {rule.id: found for rule, found in zip(self._rules, outcome.lifetimes, strict=True)}
        self._shapes = read_shapes(connection)
        self._decisions = decide_each(self._rules, self._shapes)
        #: Requests that no cache rule decides count each for itself.
        self._by_shape = {
            shape: counts
            for shape, counts in count_by(connection, self._table, "shape").items()
            if self._decisions[shape].action is not Action.CACHE
        }
        self._matters = find_what_matters(connection, self._table)
        gateways = [gateway, *find_other_gateways(gateway, self._matters.values())]
        self._runs = {_declines(own): number for number, own in enumerate(gateways)}

    def count(self, rulesets: Sequence[tuple[Rule, ...]]) -> list[list[Counts] | None]:
        """Return the total counts of each ruleset, under ``None``, for everything that the Gateway may do.

        A ruleset has None if other statements than before change data. It must be replayed as a whole.
        """
        changed = self._compare(rulesets)
        rows = [row for one in changed if one.is_data_kept for row in one.rows()]
        make_decision_table(self._connection, rows)
        lifetimes = [lifetime for one in changed for lifetime in one.lifetimes]
        parts = {_declines(self._gateway): self._replay(0, self._gateway, lifetimes)}
        matters = find_what_matters(self._connection, f"{_TABLE}_0")
        others = find_other_gateways(self._gateway, matters.values())
        for number, other in enumerate(others, start=1):
            parts[_declines(other)] = self._replay(number, other, lifetimes)
        return [self._add_up(one, matters, parts) if one.is_data_kept else None for one in changed]

    def show(self, number: int) -> tuple[str, str]:
        """Return tables of outcomes of a ruleset of the last `count`: of what was replayed, and of all."""
        columns = "is_counted, status, requested_at, mean_ms, started"
        # The entries of the two parts have different numbers.
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP VIEW replayed AS
            SELECT n - ruleset * (SELECT max(n) + 1 FROM request) AS n, {columns}, -1 - entry AS entry
            FROM {_TABLE}_0 WHERE ruleset = {number};
            CREATE OR REPLACE TEMP VIEW whole AS
            SELECT n, {columns}, entry FROM {self._table}
            WHERE shape NOT IN (SELECT shape FROM decision WHERE ruleset = {number})
            UNION ALL FROM replayed
            """  # noqa: S608
        )
        return "replayed", "whole"

    def _compare(self, rulesets: Sequence[tuple[Rule, ...]]) -> list[_Changed]:
        """Find what each ruleset changes."""
        decided = [decide_each(rules, self._shapes) for rules in rulesets]
        firing = {
            shape for one in [self._decisions, *decided] for shape, decision in one.items() if decision.fired
        }
        times = self._find_times(firing)
        changed = []
        first = 0
        for number, (rules, decisions) in enumerate(zip(rulesets, decided, strict=True)):
            lifetimes = make_lifetimes(rules, _find_markers(decisions, times), self._markers)
            changed.append(self._find_change(number, first, rules, decisions, lifetimes))
            first += len(rules)
        return changed

    def _find_times(self, shapes: Collection[int]) -> dict[int, list[int]]:
        """Return by shape the times (epoch ms) of the markers that its requests make."""
        rows = self._connection.execute(
            f"""
            SELECT shape, list(DISTINCT requested_at + work_ms) FROM {self._table}
            WHERE {_FIRES} AND list_contains($shapes::BIGINT[], shape) GROUP BY shape
            """,  # noqa: S608
            {"shapes": sorted(shapes)},
        ).fetchall()
        return dict(rows)

    def _find_change(
        self,
        number: int,
        first: int,
        rules: tuple[Rule, ...],
        decisions: Mapping[int, Decision],
        lifetimes: Sequence[Lifetime],
    ) -> _Changed:
        both = {shape: (self._decisions[shape], decisions[shape]) for shape in self._shapes}
        different = [pair for pair in both.values() if pair[0] != pair[1]]
        replayed = {rule_id for pair in different for decision in pair for rule_id in _cached_by(decision)}
        replayed |= {
            rule.id
            for rule, lifetime in zip(rules, lifetimes, strict=True)
            if self._lifetimes.get(rule.id) != lifetime
        }
        return _Changed(
            number,
            first,
            rules,
            decisions,
            lifetimes,
            frozenset(replayed),
            shapes=frozenset(
                shape
                for shape, (old, new) in both.items()
                if old != new or replayed & {*_cached_by(old), *_cached_by(new)}
            ),
            is_data_kept=all(_refuses(old) == _refuses(new) for old, new in different),
        )

    def _replay(self, number: int, gateway: Gateway, lifetimes: Sequence[Lifetime]) -> _Part:
        table = f"{_TABLE}_{number}"
        decide_requests(self._connection, _PLACED.format(table=self._table), gateway=gateway)
        play_decided(self._connection, lifetimes, table=table)
        counts = count_by_index(self._connection, table, changes=self._table)
        return _Part(counts, find_bounds(self._connection, table, lifetimes), groups_table(table))

    def _add_up(
        self, one: _Changed, matters: Mapping[int, Declines], parts: Mapping[Declines, _Part]
    ) -> list[Counts]:
        """Add what was replayed to what stays as it is."""
        kept = {
            index: rule.id
            for index, rule in enumerate(self._rules)
            if rule.action is Action.CACHE and rule.id not in one.replayed
        }
        own = [flags for rule, flags in matters.items() if rule in one.indexes]
        own += [flags for rule, flags in self._matters.items() if rule in kept]
        found = []
        for gateway in [self._gateway, *find_other_gateways(self._gateway, own)]:
            number = self._runs[self._choose(gateway, self._matters.values())]
            part = parts[self._choose(gateway, matters.values())]
            found.append(self._add_run(one, kept, number, part))
        return found

    def _choose(self, gateway: Gateway, matters: Iterable[Declines]) -> Declines:
        """Return what is declined in the run that shows what this gateway does.

        There is no run of its own for what does not matter.
        """
        nocache, non_deterministic = either(matters)
        own, first = _declines(gateway), _declines(self._gateway)
        return own[0] if nocache else first[0], own[1] if non_deterministic else first[1]

    def _add_run(self, one: _Changed, kept: Mapping[int, str], number: int, part: _Part) -> Counts:
        run = self._counts[number]
        ids: dict[int, str | None] = {one.first + index: rule.id for index, rule in enumerate(one.rules)}
        ids[one.no_rule] = None
        rules: dict[str | None, Counter[str]] = defaultdict(Counter)
        for rule_id in kept.values():
            if rule_id in run.rules:
                rules[rule_id].update(run.rules[rule_id])
                del rules[rule_id]["fired"], rules[rule_id]["markers"]
        for shape, counts in self._by_shape.items():
            if shape not in one.shapes:
                rules[self._decisions[shape].rule_id].update(counts)
        for index, counts in part.counts.items():
            if index in ids:
                rules[ids[index]].update(counts)
        self._count_firings(one.decisions, rules)
        hits, saved = (
            {rule_id: counts[name] for rule_id, counts in rules.items()}
            | {rule_id: high[rule_id] for rule_id in kept.values() if rule_id in high}
            for name, high in (("hits", run.high_hits), ("savedMs", run.high_saved_ms))
        )
        for high, above in ((hits, part.bounds.hits), (saved, part.bounds.saved_ms)):
            for index, more in above.items():
                if index in ids:
                    high[ids[index]] += more
        base = groups_table(f"{self._table}_{number}" if number else self._table)
        groups = (
            f"FROM {base} WHERE list_contains({list(kept)}::BIGINT[], rule)"
            f" UNION ALL FROM {part.groups} WHERE list_contains({sorted(ids)}::BIGINT[], rule)"
        )
        return Counts(rules, hits, saved, find_position(self._connection, groups))

    @cached_property
    def _firing_requests(self) -> Mapping[int, int]:
        """How many counted requests of each shape may fire."""
        rows = self._connection.execute(
            f"SELECT shape, count(*) FROM {self._table} WHERE is_counted AND {_FIRES} GROUP BY shape"  # noqa: S608
        ).fetchall()
        return dict(rows)

    def _count_firings(
        self, decisions: Mapping[int, Decision], rules: dict[str | None, Counter[str]]
    ) -> None:
        for shape, decision in decisions.items():
            requests = self._firing_requests.get(shape, 0) if decision.fired else 0
            for firing in decision.fired if requests else ():
                rules[firing.rule_id]["fired"] += requests
                for target in firing.targets:
                    rules[target]["markers"] += requests


def _find_markers(
    decisions: Mapping[int, Decision], times: Mapping[int, Sequence[int]]
) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for shape, at in times.items():
        for firing in decisions[shape].fired:
            for target in firing.targets:
                found[target] += at
    return found


def _cached_by(decision: Decision) -> list[str]:
    """Return the cache rule that decides, if one does."""
    if decision.action is not Action.CACHE or decision.rule_id is None:
        return []
    return [decision.rule_id]


def _refuses(decision: Decision) -> tuple[bool, bool]:
    """Return whether the statement is always refused, and whether it is without its markers."""
    return decision.action is Action.DENY, is_required(decision)


def _declines(gateway: Gateway) -> Declines:
    return gateway.nocache is not False, gateway.non_deterministic is not False
