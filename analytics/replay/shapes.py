"""Decide each distinct request shape by a ruleset.

A shape is one combination of values in the columns that the rules read. A log has few shapes, so
`rules.match` decides them in Python, and the conditions need no second implementation in SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from analytics.replay.arrays import make_schema, registered
from rules.conditions.evaluate import read_request
from rules.conditions.model import iterate_tests
from rules.language import Action
from rules.match import decide

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import Ruleset
    from rules.conditions.evaluate import Request, Value
    from rules.language import Rule
    from rules.match import Decision, Firing

#: The rule index of requests without a rule.
NO_RULE: Final = -1

_SCHEMA: Final = make_schema(
    ruleset=pa.int64(),
    shape=pa.int64(),
    rule=pa.int64(),
    is_deny=pa.bool_(),
    is_cache=pa.bool_(),
    can_fire=pa.bool_(),
    is_required=pa.bool_(),
)


def find_columns(rules: Sequence[Rule]) -> set[str]:
    """Return the columns that the enabled rules read."""
    return {test.key.name for rule in rules if rule.enabled for test, _ in iterate_tests(rule.condition)}


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of rulesets on the shapes.

    Attributes:
        rules: the rules of all rulesets. The table ``decision`` has their indexes in this list.
        firings: the rules that fire, by ruleset number and shape number.
    """

    rules: Sequence[Rule]
    firings: Mapping[tuple[int, int], tuple[Firing, ...]]


def decide_shapes(connection: DuckDBPyConnection, rulesets: Sequence[Ruleset]) -> Decisions:
    """Create ``decision`` with a row for each ruleset and shape."""
    shapes = _read_shapes(connection)
    rules: list[Rule] = []
    firings: dict[tuple[int, int], tuple[Firing, ...]] = {}
    rows = []
    for number, ruleset in enumerate(rulesets):
        indexes = {rule.id: len(rules) + index for index, rule in enumerate(ruleset.rules)}
        rules += ruleset.rules
        for shape, decision in _decide_each(ruleset.rules, shapes).items():
            firings[number, shape] = decision.fired
            rows.append(
                (
                    number,
                    shape,
                    NO_RULE if decision.rule_id is None else indexes[decision.rule_id],
                    decision.action is Action.DENY,
                    decision.action is Action.CACHE,
                    bool(decision.fired),
                    any(firing.required for firing in decision.fired),
                )
            )
    columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
    table = pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)],
        schema=_SCHEMA,
    )
    with registered(connection, new_decision=table):
        connection.execute("CREATE OR REPLACE TEMP TABLE decision AS FROM new_decision")
    return Decisions(rules, firings)


def _read_shapes(connection: DuckDBPyConnection) -> dict[int, Request]:
    """Return the shapes by number."""
    relation = connection.execute("SELECT * FROM shape ORDER BY shape")
    names = [column[0] for column in relation.description or ()]
    return {row[0]: read_request(dict(zip(names[1:], row[1:], strict=True))) for row in relation.fetchall()}


def _decide_each(rules: Sequence[Rule], shapes: Mapping[int, Request]) -> dict[int, Decision]:
    """Return the decision on each shape. Shapes with equal values in the rules' columns are decided once."""
    columns = sorted(find_columns(rules))
    by_values: dict[tuple[Value, ...], Decision] = {}
    decisions = {}
    for shape, request in shapes.items():
        values = tuple(request[name] for name in columns)
        if values not in by_values:
            by_values[values] = decide(rules, request)
        decisions[shape] = by_values[values]
    return decisions
