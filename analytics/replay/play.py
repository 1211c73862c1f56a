"""Compute the outcome of every loaded request under a ruleset.

Sections "Status", "Markers", "Key" and "Cache" of the definition (docs/replay.md).
"""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.replay.load import (
    AT_A_TIME,
    STATUS_TYPE,
    as_column,
    fill_table,
    make_schema,
    read_numbers,
    registered,
)
from analytics.replay.rules import NO_RULE, decide_shapes, make_placed, make_varied

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.load import Gateway, Marker, Ruleset
    from analytics.replay.rules import Decisions

#: Later than every request.
NEVER: Final = 2**62
#: The reasons to start an execution: the values of the column ``reason``.
NO_CACHE_ENTRY, TTL_EXPIRED, INVALIDATION_MARKER, REVALIDATION = range(4)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The lifetime of a rule's results: fresh ms, then stale ms, and the sorted times of its markers."""

    ttl_ms: int
    stale_ms: int
    markers: Sequence[int]


@dataclass(frozen=True, slots=True)
class Chain:
    """The executions, and the execution before each candidate.

    Attributes:
        owners: for each candidate, the index of the last execution of its key up to its time, or -1.
        executions: ``position`` (of the candidate), ``started``, ``born`` (the result is ready),
            ``fresh_until``, ``stale_until``, ``reason``, and ``older``: the index of the execution before it,
            or -1.
    """

    owners: Any
    executions: pa.Table


def find_executions(candidates: pa.Table, lifetimes: Sequence[Lifetime]) -> Chain:
    """Find the executions.

    Args:
        candidates: the cache requests, sorted by ``key`` and then by time. The columns ``key``,
            ``requested_at``, ``work_ms``, ``is_failing`` (0 or 1) and ``rule`` (the index of its lifetime)
            are integers.
    """
    keys, times, works, failing, rules = (
        read_numbers(candidates[name]) for name in ("key", "requested_at", "work_ms", "is_failing", "rule")
    )
    owners = array("q")
    position, born, fresh_until, stale_until, reason, older = (array("q") for _ in range(6))
    start, total = 0, len(keys)
    while start < total:
        end = bisect_right(keys, keys[start], start)
        lifetime = lifetimes[rules[start]]
        execution = -1
        index = covered = start
        while True:
            while index < end and failing[index]:
                index += 1
            owners.extend(repeat(execution, index - covered))
            if index == end:
                break
            covered = index
            at = times[index]
            if execution < 0:
                reason.append(NO_CACHE_ENTRY)
            elif at < stale_until[execution]:
                reason.append(REVALIDATION)
            elif at >= born[execution] + lifetime.ttl_ms:
                reason.append(TTL_EXPIRED)
            else:
                reason.append(INVALIDATION_MARKER)
            older.append(execution)
            execution = len(position)
            ready = at + works[index]
            marked = bisect_right(lifetime.markers, ready)
            invalid_from = lifetime.markers[marked] if marked < len(lifetime.markers) else NEVER
            expires = ready + lifetime.ttl_ms
            position.append(index)
            born.append(ready)
            fresh_until.append(min(expires, invalid_from))
            stale_until.append(min(expires + lifetime.stale_ms, invalid_from))
            index = bisect_left(times, fresh_until[execution], index + 1, end)
        start = end
    positions = as_column(position)
    return Chain(
        owners=as_column(owners),
        executions=pa.table(
            {
                "position": positions,
                "started": candidates["requested_at"].take(positions),
                "born": as_column(born),
                "fresh_until": as_column(fresh_until),
                "stale_until": as_column(stale_until),
                "reason": as_column(reason),
                "older": as_column(older),
            }
        ),
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a replay.

    Attributes:
        table: the name of the view of outcomes. It has the columns of ``decided``, and ``status``,
            ``is_stale``, ``is_revalidation``, ``reason``. ``entry`` (an index), ``started`` and ``born``
            describe the cache entry that was served. ``merged_status`` and ``merged_revalidation`` are a
            second outcome: as if requests with the same statement and values had equal literals.
        played: the table of the outcomes that were played: all, or those that may differ from ``like``.
        lifetimes: by the index of the rule.
        entries: above the index of every entry.
    """

    table: str
    played: str
    decisions: Decisions
    lifetimes: Sequence[Lifetime]
    entries: int


def play(
    connection: DuckDBPyConnection,
    rulesets: Sequence[Ruleset],
    *,
    table: str,
    gateway: Gateway,
    restarts: Sequence[int],
    markers: Sequence[Marker],
    like: Outcome | None = None,
) -> Outcome:
    """Create the view ``table`` with the outcome of every request under the rulesets.

    It also replaces the tables ``decided`` and ``cache_outcome``.

    Args:
        gateway: for an unknown setting, the Gateway skips the cache.
        like: the outcome of one ruleset, with the other arguments equal. Then ``rulesets`` is one too, and
            only what it may change is played.
    """
    decisions = decide_shapes(connection, rulesets)
    make_placed(connection, rulesets, restarts)
    lifetimes = _find_lifetimes(connection, decisions, markers)
    placed, played, entries = "placed", f"{table}_played", 0
    outcomes = f"FROM {played}"
    if like is not None:
        _find_touched(connection, like, decisions, lifetimes)
        placed, entries = "placed SEMI JOIN touched USING (statement)", like.entries
        indexes = {rule.id: index for index, rule in enumerate(decisions.rules)}
        by_index = [NO_RULE, *(indexes.get(rule.id, NO_RULE) for rule in like.decisions.rules)]
        outcomes += f"""
            UNION ALL SELECT * REPLACE (list_extract({by_index}::INTEGER[], rule + 2) AS rule)
            FROM {like.table} ANTI JOIN touched USING (statement)
        """
    _decide_requests(connection, placed, decisions, gateway=gateway)
    entries = _play_cache(connection, lifetimes, entries=entries)
    count, last = connection.execute("SELECT count(*), coalesce(max(n), 0) FROM decided").fetchall()[0]
    step = max(AT_A_TIME * last // max(count, 1), 1)
    for before in range(0, max(last, 1), step):
        rows = _OUTCOMES.format(rows=f"n > {before} AND n <= {before + step}")
        fill_table(connection, played, rows, is_new=not before)
    connection.execute(f"CREATE OR REPLACE VIEW {table} AS {outcomes}")
    return Outcome(table, played, decisions, lifetimes, entries)


def _find_touched(
    connection: DuckDBPyConnection, like: Outcome, decisions: Decisions, lifetimes: Sequence[Lifetime]
) -> None:
    """Create ``touched``: the statements whose requests may have another outcome than in ``like``.

    It has those with a request that is decided otherwise, and those that share results with them, whatever
    the settings of the Gateway are.
    """
    before, after = (
        {rule.id: (rule.vary_by, life) for rule, life in zip(rules, lives, strict=True)}
        for rules, lives in ((like.decisions.rules, like.lifetimes), (decisions.rules, lifetimes))
    )
    shapes = [
        {"shape": shape}
        for (ruleset, shape), decision in decisions.of_shapes.items()
        if decision != like.decisions.of_shapes[ruleset, shape]
        or (decision.rule_id is not None and before[decision.rule_id] != after[decision.rule_id])
    ]
    with registered(connection, touched_shape=pa.Table.from_pylist(shapes, _SHAPE)):
        connection.execute(_TOUCHED)


_SHAPE: Final = make_schema(shape=pa.int64())
#: Statements share results where the log has one hash for requests for them.
_TOUCHED: Final = """
    CREATE OR REPLACE TABLE touched AS
    WITH RECURSIVE shared AS MATERIALIZED (
        SELECT DISTINCT statement, identity FROM request WHERE kind = 'known' AND identity IN (
            SELECT identity FROM request WHERE kind = 'known' GROUP BY identity
            HAVING min(statement) <> max(statement)
        )
    ), reached AS (
        SELECT DISTINCT statement FROM request SEMI JOIN touched_shape USING (shape)
        UNION
        SELECT statement FROM shared SEMI JOIN (
            SELECT identity FROM reached JOIN shared USING (statement)
        ) AS reached_identity USING (identity)
    )
    FROM reached
"""


#: An open request has no identity, so its result was never requested before.
_OUTCOMES: Final = f"""
    SELECT decided.* REPLACE (
            CASE WHEN decided.status IS NOT NULL THEN decided.status
            WHEN kind <> 'open' THEN own.status
            WHEN is_failing THEN 'ERROR' ELSE 'MISS' END::{STATUS_TYPE} AS status
        ),
        decided.status IS NULL AS is_cached,
        coalesce(own.is_stale, false) AS is_stale,
        coalesce(own.is_revalidation, false) AS is_revalidation,
        CASE WHEN decided.status IS NOT NULL OR is_failing THEN NULL
            WHEN kind = 'open' THEN 0 ELSE own.reason END AS reason,
        entry, started, born, merged_status, merged_revalidation
    FROM (FROM decided WHERE {{rows}}) AS decided
    LEFT JOIN (FROM cache_outcome WHERE NOT is_merged AND {{rows}}) AS own USING (n)
    LEFT JOIN (
        SELECT n, status AS merged_status, is_revalidation AS merged_revalidation
        FROM cache_outcome WHERE is_merged AND {{rows}}
    ) AS merged USING (n)
"""


#: A statement that was not executed fires nothing.
_FIRES: Final = "can_fire AND logged NOT IN ('ERROR', 'INVALIDATION_ERROR')"


def _decide_requests(
    connection: DuckDBPyConnection, placed: str, decisions: Decisions, *, gateway: Gateway
) -> None:
    """Create ``decided`` from ``placed`` and ``decision``. ``status`` is null if it depends on the cache.

    ``vary`` is the number of the values that the result varies by; 0 if it does not.
    """
    declines = " OR ".join(
        flag
        for flag, is_declined in (
            ("is_nocache", gateway.nocache),
            ("is_non_deterministic", gateway.non_deterministic),
        )
        if is_declined is not False
    )
    vary_values = make_varied(connection, decisions.rules, gateway)
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE decided AS
        SELECT n, requested_at, is_counted, logged, statement, pair, table_list, mean_ms, work_ms, kind,
            identity, bytes, is_change, shape, ruleset, restart, rule, coalesce(vary, 0) AS vary, weight,
            is_cache AND is_nocache AS is_nocache,
            is_cache AND is_non_deterministic AS is_non_deterministic,
            logged = 'ERROR' AS is_failing,
            {_FIRES} AS fires,
            CASE WHEN is_deny THEN 'BLOCKED'
                WHEN logged = 'INVALIDATION_ERROR' AND is_required THEN 'INVALIDATION_ERROR'
                WHEN is_cache AND NOT ({declines or "false"})
                    AND (varying_rule.vary_set IS NULL OR vary IS NOT NULL) THEN NULL
                WHEN logged = 'ERROR' THEN 'ERROR'
                WHEN rule < 0 THEN 'PASSTHROUGH' ELSE 'BYPASS' END::{STATUS_TYPE} AS status
        FROM {placed} JOIN decision USING (ruleset, shape)
        LEFT JOIN varying_rule USING (rule)
        LEFT JOIN varied ON varied.vary_set = varying_rule.vary_set AND varied.vary_values = {vary_values}
        """
    )


def _find_lifetimes(
    connection: DuckDBPyConnection, decisions: Decisions, markers: Sequence[Marker]
) -> list[Lifetime]:
    """Return the lifetime of each rule, with the markers that rules and people make."""
    marker_times: dict[str, set[int]] = defaultdict(set)
    for ruleset, shape, at in connection.execute(
        "SELECT DISTINCT ruleset, shape, requested_at + work_ms"
        f" FROM placed JOIN decision USING (ruleset, shape) WHERE {_FIRES}"
    ).fetchall():
        for firing in decisions.of_shapes[ruleset, shape].fired:
            for target in firing.targets:
                marker_times[target].add(at)
    for marker in markers:
        marker_times[marker.rule_id].add(marker.at)
    return [
        Lifetime(
            ttl_ms=1000 * rule.ttl_seconds,
            stale_ms=1000 * (rule.stale_while_revalidate or 0),
            markers=sorted(marker_times[rule.id]),
        )
        for rule in decisions.rules
    ]


def _play_cache(connection: DuckDBPyConnection, lifetimes: Sequence[Lifetime], *, entries: int) -> int:
    """Create ``cache_outcome`` for each cache request, some of the identities at a time.

    The numbers of cache entries begin at ``entries``. Return where they end.
    """
    (count,) = connection.execute("SELECT count(*) FROM decided WHERE status IS NULL").fetchall()[0]
    parts = 1 + count // AT_A_TIME
    connection.execute(
        """
        CREATE OR REPLACE TABLE cache_place AS
        SELECT row_number() OVER () AS place, rule, restart, vary FROM decided WHERE status IS NULL
        GROUP BY rule, restart, vary
        """
    )
    for part in range(parts):
        entries += _play_part(connection, lifetimes, part=part, parts=parts, entries=entries)
    return entries


def _play_part(
    connection: DuckDBPyConnection, lifetimes: Sequence[Lifetime], *, part: int, parts: int, entries: int
) -> int:
    """Add a part of the cache requests to ``cache_outcome``. Return the number of executions."""
    candidates = connection.execute(_CANDIDATES, {"part": part, "parts": parts}).to_arrow_table()
    chain = find_executions(candidates, lifetimes)
    places = pa.arange(0, chain.executions.num_rows)  # type: ignore[attr-defined]
    executions = chain.executions.append_column("execution", places)
    last = _take(executions, chain.owners)
    before = _take(executions.select(["execution", "started", "born", "stale_until"]), last["older"])
    numbers = pa.arange(0, candidates.num_rows)  # type: ignore[attr-defined]
    owned = candidates.select(["n", "is_merged", "requested_at"]).append_column("number", numbers)
    for name, table in (("last", last), ("before", before)):
        for column in table.column_names:
            owned = owned.append_column(f"{name}_{column}", table[column])
    with registered(connection, owned=owned):
        fill_table(connection, "cache_outcome", _CACHE_OUTCOME.format(entries=entries), is_new=not part)
    return chain.executions.num_rows


def _take(rows: pa.Table, indexes: Any) -> pa.Table:
    """Return the rows with these indexes; a row of nulls for an index of -1."""
    return rows.take(pc.if_else(pc.less(indexes, 0), None, indexes))


#: The cache requests of a part by key: one integer for rule, restart, the values that results vary by, and
#: identity.
_CANDIDATES: Final = """
    WITH size AS (SELECT (SELECT count(*) FROM pair) AS pairs, (SELECT count(*) FROM query_hash) AS hashes),
    cached AS (
        SELECT n, requested_at, work_ms, is_failing, rule, restart, vary, false AS is_merged, identity
        FROM decided WHERE status IS NULL AND kind <> 'open' AND identity % $parts = $part
        UNION ALL
        SELECT n, requested_at, work_ms, is_failing, rule, restart, vary, true,
            if(kind = 'open', pairs, 2 * pairs) + hashes + pair
        FROM decided, size WHERE status IS NULL AND kind <> 'exact' AND pair % $parts = $part
    )
    SELECT n, is_merged, requested_at, work_ms::BIGINT AS work_ms, is_failing::BIGINT AS is_failing, rule,
        place * (3 * pairs + hashes + 1) + identity AS key
    FROM cached JOIN cache_place USING (rule, restart, vary), size ORDER BY key, n
"""
#: A failing request starts no execution, so it may come after the last entry has expired.
_CACHE_OUTCOME: Final = f"""
    SELECT n, is_merged,
        CASE WHEN last_execution IS NULL THEN 'ERROR'
            WHEN number = last_position THEN if(last_reason = {REVALIDATION}, 'HIT', 'MISS')
            WHEN requested_at < last_born THEN if(requested_at < before_stale_until, 'HIT', 'HOLD')
            WHEN requested_at < last_stale_until THEN 'HIT'
            ELSE 'ERROR' END::{STATUS_TYPE} AS status,
        status = 'HIT' AND (
            requested_at < last_born OR number = last_position
            OR requested_at >= last_fresh_until
        ) AS is_stale,
        number = last_position AND last_reason = {REVALIDATION} AS is_revalidation,
        CASE WHEN status = 'MISS' THEN last_reason::TINYINT END AS reason,
        CASE WHEN status <> 'HIT' THEN NULL
            WHEN requested_at < last_born OR number = last_position THEN before_execution
            ELSE last_execution END + {{entries}} AS entry,
        if(entry = last_execution + {{entries}}, last_started, before_started) AS started,
        if(entry = last_execution + {{entries}}, last_born, before_born) AS born
    FROM owned
"""
