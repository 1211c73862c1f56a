"""Decide the loaded requests by rulesets, and learn from the log what the Gateway does by itself.

Sections "Status" and "Keys" of the definition (docs/replay.md).
"""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from analytics.replay.load import NUMBER_OF, Gateway, make_schema, registered
from logs.definitions import BYPASSED
from rules.conditions.evaluate import read_request
from rules.conditions.model import iterate_tests
from rules.language import Action
from rules.match import decide

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.load import Job, Ruleset
    from rules.conditions.evaluate import Request, Value
    from rules.language import Rule
    from rules.match import Decision

_VARYING: Final = make_schema(rule=pa.int64(), vary_set=pa.int64())


def make_placed(connection: DuckDBPyConnection, rulesets: Sequence[Ruleset], restarts: Sequence[int]) -> None:
    """Create the view ``placed``: the requests with their ``ruleset`` (index) and ``restart`` (number)."""
    starts = [ruleset.starts_at for ruleset in rulesets[1:]]
    connection.execute(
        f"""
        CREATE OR REPLACE VIEW placed AS
        SELECT request.* EXCLUDE (day, took_ms), {_count_before(starts)} AS ruleset,
            {_count_before(sorted(restarts))} AS restart
        FROM request
        """
    )


def _count_before(times: Sequence[int], number: int = 0) -> str:
    """Return SQL for how many of the sorted times are not after ``requested_at``, plus ``number``.

    It compares as often as a binary search. A join on the nearest time would sort all requests.
    """
    if not times:
        return f"{number}::INTEGER"
    middle = len(times) // 2
    before, after = times[:middle], times[middle + 1 :]
    return (
        f"if(requested_at < {times[middle]}, {_count_before(before, number)},"
        f" {_count_before(after, number + middle + 1)})"
    )


def make_varied(connection: DuckDBPyConnection, rules: Sequence[Rule], gateway: Gateway) -> str:
    """Create ``varying_rule`` and ``varied``: the rules that vary, and their values by number.

    Return the SQL for the values that a row of ``placed`` varies by, given its ``vary_set``. A combination
    with a null has no number.
    """
    columns_of = {index: _columns_of(rule, gateway) for index, rule in enumerate(rules)}
    sets = sorted({columns for columns in columns_of.values() if columns})
    table = pa.Table.from_pylist(
        [
            {"rule": index, "vary_set": sets.index(columns)}
            for index, columns in columns_of.items()
            if columns
        ],
        _VARYING,
    )
    lists = [f"[{', '.join(NUMBER_OF[column] for column in columns)}]" for columns in sets]
    parts = [
        f"SELECT DISTINCT {number} AS vary_set, {values} AS vary_values FROM request"
        f" WHERE {' AND '.join(f'{NUMBER_OF[column]} IS NOT NULL' for column in sets[number])}"
        for number, values in enumerate(lists)
    ]
    source = " UNION ALL ".join(parts) or "SELECT 0 AS vary_set, []::BIGINT[] AS vary_values WHERE false"
    with registered(connection, new_rule=table):
        connection.execute("CREATE OR REPLACE TABLE varying_rule AS FROM new_rule")
    connection.execute(
        "CREATE OR REPLACE TABLE varied AS"
        f" SELECT row_number() OVER ()::INTEGER AS vary, vary_set, vary_values FROM ({source})"
    )
    cases = "".join(f" WHEN {number} THEN {values}" for number, values in enumerate(lists))
    return f"CASE varying_rule.vary_set{cases} END" if cases else "[]::BIGINT[]"


def _columns_of(rule: Rule, gateway: Gateway) -> tuple[str, ...]:
    if rule.action is not Action.CACHE:
        return ()
    if not rule.vary_by and gateway.keys_per_user:
        return ("userName",)
    return tuple(sorted(rule.vary_by or ()))


#: The rule index of requests without a rule.
NO_RULE: Final = -1
_DECISION: Final = make_schema(
    ruleset=pa.int32(),
    shape=pa.int32(),
    rule=pa.int32(),
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
        of_shapes: the decisions by ruleset number and shape number.
    """

    rules: Sequence[Rule]
    of_shapes: Mapping[tuple[int, int], Decision]


def decide_shapes(connection: DuckDBPyConnection, rulesets: Sequence[Ruleset]) -> Decisions:
    """Create ``decision`` with a row for each ruleset and shape."""
    shapes = _read_shapes(connection)
    rules: list[Rule] = []
    of_shapes: dict[tuple[int, int], Decision] = {}
    rows = []
    for number, ruleset in enumerate(rulesets):
        indexes = {rule.id: len(rules) + index for index, rule in enumerate(ruleset.rules)}
        rules += ruleset.rules
        for shape, decision in _decide_each(ruleset.rules, shapes).items():
            of_shapes[number, shape] = decision
            rows.append(
                {
                    "ruleset": number,
                    "shape": shape,
                    "rule": NO_RULE if decision.rule_id is None else indexes[decision.rule_id],
                    "is_deny": decision.action is Action.DENY,
                    "is_cache": decision.action is Action.CACHE,
                    "can_fire": bool(decision.fired),
                    "is_required": any(firing.required for firing in decision.fired),
                }
            )
    table = pa.Table.from_pylist(rows, _DECISION)
    with registered(connection, new_decision=table):
        connection.execute("CREATE OR REPLACE TABLE decision AS FROM new_decision")
    return Decisions(rules, of_shapes)


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


_ON: Final = 0.99
_OFF: Final = 0.01
_LOGGED_VARYING: Final = make_schema(ruleset=pa.int64(), logged_rule=pa.string())


def learn_gateway(connection: DuckDBPyConnection, job: Job, *, restarts: Sequence[int]) -> Gateway:
    """Return the settings of the Gateway: those that the job knows, and the others from the log.

    A setting is True if it holds for nearly all cases in the log, False if for nearly none, and otherwise
    None. The Gateway declines requests if those that the current cache rules decided are BYPASS.
    """
    known = job.gateway
    cache_rules = [rule.id for rule in job.current if rule.action is Action.CACHE]
    query = "SELECT {} FROM request WHERE list_contains($rules::VARCHAR[], logged_rule)"
    shares = connection.execute(
        query.format(", ".join(_share(flag) for flag in ("is_nocache", "is_non_deterministic"))),
        {"rules": cache_rules},
    ).fetchall()[0]
    flags = [_read_share(share) for share in shares]
    keys_per_user = known.keys_per_user
    if keys_per_user is None:
        keys_per_user = _read_share(_share_per_user(connection, job.rulesets_in_force, restarts))
    return Gateway(
        nocache=flags[0] if known.nocache is None else known.nocache,
        non_deterministic=flags[1] if known.non_deterministic is None else known.non_deterministic,
        keys_per_user=keys_per_user,
    )


def _share_per_user(
    connection: DuckDBPyConnection, in_force: Sequence[Ruleset], restarts: Sequence[int]
) -> float | None:
    """Return the share of results that several users asked for, and that no two of them shared.

    A result is what requests with a cache key agree in: rule, restart and identity. Results of rules that
    varied when they were in force say nothing about what the Gateway does by itself.
    """
    varying = [
        {"ruleset": number, "logged_rule": rule.id}
        for number, ruleset in enumerate(in_force)
        for rule in ruleset.rules
        if rule.vary_by
    ]
    with registered(connection, logged_varying=pa.Table.from_pylist(varying, _LOGGED_VARYING)):
        make_placed(connection, in_force, restarts)
        share: float | None = connection.execute(
            """
            WITH stored AS (
                SELECT logged_rule, restart, identity, cache_key, count(DISTINCT user_name) AS users,
                    any_value(weight) AS weight, min(user_name) AS first_user, max(user_name) AS last_user
                FROM placed ANTI JOIN logged_varying USING (ruleset, logged_rule)
                WHERE cache_key IS NOT NULL AND user_name IS NOT NULL AND logged_rule IS NOT NULL
                GROUP BY logged_rule, restart, identity, cache_key
            )
            SELECT coalesce(sum(weight) FILTER (most = 1), 0) / nullif(sum(weight), 0) FROM (
                SELECT max(users) AS most, any_value(weight) AS weight FROM stored
                GROUP BY logged_rule, restart, identity
                HAVING min(first_user) <> max(last_user)
            )
            """
        ).fetchall()[0][0]
    return share


def _share(flag: str) -> str:
    declined = f"sum(weight) FILTER ({flag} AND {BYPASSED.of('logged')})"
    return f"coalesce({declined}, 0) / nullif(sum(weight) FILTER ({flag}), 0)"


def _read_share(share: float | None) -> bool | None:
    if share is None or _OFF < share < _ON:
        return None
    return share >= _ON


def find_other_gateways(connection: DuckDBPyConnection, table: str, gateway: Gateway) -> list[Gateway]:
    """Return the other possible settings of the Gateway that would change the outcomes in ``table``.

    An unknown setting was played as True. The others have it False, if the table holds such requests. That
    the Gateway keeps users apart is only played if it is known.
    """
    affected = connection.execute(
        f"SELECT bool_or(is_nocache), bool_or(is_non_deterministic) FROM {table}"
    ).fetchall()[0]
    choices = [
        [True, False] if setting is None and is_affected else [setting is not False]
        for setting, is_affected in zip((gateway.nocache, gateway.non_deterministic), affected, strict=True)
    ]
    return [Gateway(nocache, random, gateway.keys_per_user) for nocache, random in product(*choices)][1:]
