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

from analytics.replay.load import AT_A_TIME, STATUS_TYPE, as_column, fill_table, read_numbers, registered
from analytics.replay.rules import decide_shapes, make_placed, make_varied

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


#: The values of the column ``lane``: how requests for the same result were recognized.
BY_IDENTITY, OPEN_MERGED, KNOWN_MERGED = range(3)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a replay.

    Attributes:
        table: the name of the table of outcomes. It has the columns of ``decided``, and ``status``,
            ``is_stale``, ``is_revalidation``, ``reason``. ``entry`` (an index), ``started`` and ``born``
            describe the cache entry that was served.
        lifetimes: by the index of the rule.
    """

    table: str
    decisions: Decisions
    lifetimes: Sequence[Lifetime]


def play(
    connection: DuckDBPyConnection,
    rulesets: Sequence[Ruleset],
    *,
    table: str,
    gateway: Gateway,
    restarts: Sequence[int],
    markers: Sequence[Marker],
) -> Outcome:
    """Create ``table`` with the outcome of every request under the rulesets.

    It also replaces the tables ``decided`` and ``played``. ``played`` has a second outcome for requests with
    hidden literals: as if requests with the same statement and values had equal literals.

    Args:
        gateway: for an unknown setting, the Gateway skips the cache.
    """
    decisions = decide_shapes(connection, rulesets)
    _decide_requests(connection, rulesets, decisions, gateway=gateway, restarts=restarts)
    lifetimes = _find_lifetimes(connection, decisions, markers)
    _play_cache(connection, lifetimes)
    (count,) = connection.execute("SELECT count(*) FROM decided").fetchall()[0]
    for before in range(0, max(count, 1), AT_A_TIME):
        outcomes = _OUTCOMES.format(rows=f"n > {before} AND n <= {before + AT_A_TIME}")
        fill_table(connection, table, outcomes, is_new=not before)
    return Outcome(table, decisions, lifetimes)


#: An open request has no identity, so its result was never requested before.
_OUTCOMES: Final = f"""
    SELECT decided.* REPLACE (
            CASE WHEN decided.status IS NOT NULL THEN decided.status
            WHEN kind <> 'open' THEN played.status
            WHEN is_failing THEN 'ERROR' ELSE 'MISS' END::{STATUS_TYPE} AS status
        ),
        decided.status IS NULL AS is_cached,
        coalesce(played.is_stale, false) AS is_stale,
        coalesce(played.is_revalidation, false) AS is_revalidation,
        CASE WHEN decided.status IS NOT NULL OR is_failing THEN NULL
            WHEN kind = 'open' THEN 0 ELSE played.reason END AS reason,
        entry, started, born
    FROM (FROM decided WHERE {{rows}}) AS decided
    LEFT JOIN (FROM played WHERE lane = {BY_IDENTITY} AND {{rows}}) AS played USING (n)
"""


def _decide_requests(
    connection: DuckDBPyConnection,
    rulesets: Sequence[Ruleset],
    decisions: Decisions,
    *,
    gateway: Gateway,
    restarts: Sequence[int],
) -> None:
    """Create ``decided`` from the table ``decision``. ``status`` is null if it depends on the cache.

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
    make_placed(connection, rulesets, restarts)
    vary_values = make_varied(connection, decisions.rules, gateway)
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE decided AS
        SELECT n, requested_at, is_counted, logged, statement, pair, table_list, mean_ms, work_ms, kind,
            identity, bytes, is_change, shape, ruleset, restart, rule, coalesce(vary, 0) AS vary, weight,
            is_cache AND is_nocache AS is_nocache,
            is_cache AND is_non_deterministic AS is_non_deterministic,
            logged = 'ERROR' AS is_failing,
            can_fire AND logged NOT IN ('ERROR', 'INVALIDATION_ERROR') AS fires,
            CASE WHEN is_deny THEN 'BLOCKED'
                WHEN logged = 'INVALIDATION_ERROR' AND is_required THEN 'INVALIDATION_ERROR'
                WHEN is_cache AND NOT ({declines or "false"})
                    AND (varying_rule.vary_set IS NULL OR vary IS NOT NULL) THEN NULL
                WHEN logged = 'ERROR' THEN 'ERROR'
                WHEN rule < 0 THEN 'PASSTHROUGH' ELSE 'BYPASS' END::{STATUS_TYPE} AS status
        FROM placed JOIN decision USING (ruleset, shape)
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
        "SELECT DISTINCT ruleset, shape, requested_at + work_ms FROM decided WHERE fires"
    ).fetchall():
        for firing in decisions.firings[ruleset, shape]:
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


def _play_cache(connection: DuckDBPyConnection, lifetimes: Sequence[Lifetime]) -> None:
    """Create ``played`` with the outcome of each cache request, for some of the identities at a time."""
    (count,) = connection.execute("SELECT count(*) FROM decided WHERE status IS NULL").fetchall()[0]
    parts = 1 + count // AT_A_TIME
    connection.execute(
        """
        CREATE OR REPLACE TABLE cache_place AS
        SELECT row_number() OVER () AS place, rule, restart, vary FROM decided WHERE status IS NULL
        GROUP BY rule, restart, vary
        """
    )
    entries = 0
    for part in range(parts):
        entries += _play_part(connection, lifetimes, part=part, parts=parts, entries=entries)


def _play_part(
    connection: DuckDBPyConnection, lifetimes: Sequence[Lifetime], *, part: int, parts: int, entries: int
) -> int:
    """Add a part of the cache requests to ``played``. Return the number of executions.

    Args:
        entries: the number of executions of the parts before. The numbers of cache entries begin there.
    """
    candidates = connection.execute(_CANDIDATES, {"part": part, "parts": parts}).to_arrow_table()
    chain = find_executions(candidates, lifetimes)
    owners = candidates.select(["n", "lane", "requested_at"]).append_column("owner", chain.owners)
    numbers = pa.arange(0, owners.num_rows)  # type: ignore[attr-defined]
    places = pa.arange(0, chain.executions.num_rows)  # type: ignore[attr-defined]
    executions = chain.executions.append_column("execution", places)
    with registered(connection, owned=owners.append_column("position", numbers), execution=executions):
        fill_table(connection, "played", _PLAYED.format(entries=entries), is_new=not part)
    return chain.executions.num_rows


#: The cache requests of a part by key: one integer for rule, restart, the values that results vary by, and
#: identity.
_CANDIDATES: Final = f"""
    WITH size AS (SELECT (SELECT count(*) FROM pair) AS pairs, (SELECT count(*) FROM query_hash) AS hashes),
    cached AS (
        SELECT n, requested_at, work_ms, is_failing, rule, restart, vary, {BY_IDENTITY} AS lane, identity
        FROM decided WHERE status IS NULL AND kind <> 'open' AND identity % $parts = $part
        UNION ALL
        SELECT n, requested_at, work_ms, is_failing, rule, restart, vary, {OPEN_MERGED}, pairs + hashes + pair
        FROM decided, size WHERE status IS NULL AND kind = 'open' AND pair % $parts = $part
        UNION ALL
        SELECT n, requested_at, work_ms, is_failing, rule, restart, vary, {KNOWN_MERGED},
            2 * pairs + hashes + pair
        FROM decided, size WHERE status IS NULL AND kind = 'known' AND pair % $parts = $part
    )
    SELECT n, lane, requested_at, work_ms::BIGINT AS work_ms, is_failing::BIGINT AS is_failing, rule,
        place * (3 * pairs + hashes + 1) + identity AS key
    FROM cached JOIN cache_place USING (rule, restart, vary), size ORDER BY key, n
"""
#: A failing request starts no execution, so it may come after the last entry has expired.
_PLAYED: Final = f"""
    SELECT n, lane::TINYINT AS lane,
        CASE WHEN last.execution IS NULL THEN 'ERROR'
            WHEN candidate.position = last.position THEN if(last.reason = {REVALIDATION}, 'HIT', 'MISS')
            WHEN requested_at < last.born THEN if(requested_at < before.stale_until, 'HIT', 'HOLD')
            WHEN requested_at < last.stale_until THEN 'HIT'
            ELSE 'ERROR' END::{STATUS_TYPE} AS status,
        status = 'HIT' AND (
            requested_at < last.born OR candidate.position = last.position
            OR requested_at >= last.fresh_until
        ) AS is_stale,
        candidate.position = last.position AND last.reason = {REVALIDATION} AS is_revalidation,
        CASE WHEN status = 'MISS' THEN last.reason::TINYINT END AS reason,
        CASE WHEN status <> 'HIT' THEN NULL
            WHEN requested_at < last.born OR candidate.position = last.position THEN before.execution
            ELSE last.execution END + {{entries}} AS entry,
        if(entry = last.execution + {{entries}}, last.started, before.started) AS started,
        if(entry = last.execution + {{entries}}, last.born, before.born) AS born
    FROM owned AS candidate
    LEFT JOIN execution AS last ON last.execution = candidate.owner
    LEFT JOIN execution AS before ON before.execution = last.older
"""
