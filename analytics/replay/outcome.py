"""Compute the outcome of every loaded request under a ruleset.

Sections "Status", "Markers", "Key" and "Cache" of the definition (docs/replay.md).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from analytics.replay.arrays import registered
from analytics.replay.chain import REVALIDATION, Lifetime, find_executions
from analytics.replay.placing import make_placed, make_varied
from analytics.replay.shapes import decide_shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import Gateway, Marker, Ruleset
    from analytics.replay.shapes import Decisions

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
    # An open request has no identity, so its result was never requested before.
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT decided.* REPLACE (
                CASE WHEN decided.status IS NOT NULL THEN decided.status
                WHEN kind <> 'open' THEN played.status
                WHEN is_failing THEN 'ERROR' ELSE 'MISS' END AS status
            ),
            decided.status IS NULL AS is_cached,
            coalesce(played.is_stale, false) AS is_stale,
            coalesce(played.is_revalidation, false) AS is_revalidation,
            CASE WHEN decided.status IS NOT NULL OR is_failing THEN NULL
                WHEN kind = 'open' THEN 0 ELSE played.reason END AS reason,
            entry, started, born
        FROM decided LEFT JOIN played ON played.n = decided.n AND played.lane = {BY_IDENTITY}
        """  # noqa: S608
    )
    return Outcome(table, decisions, lifetimes)


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
        CREATE OR REPLACE TEMP TABLE decided AS
        SELECT n, requested_at, is_counted, logged, statement, pair, table_list, mean_ms, work_ms, kind,
            identity, bytes, is_change, shape, ruleset, restart, rule, coalesce(vary, 0) AS vary,
            is_cache AND is_nocache AS is_nocache,
            is_cache AND is_non_deterministic AS is_non_deterministic,
            logged = 'ERROR' AS is_failing,
            can_fire AND logged NOT IN ('ERROR', 'INVALIDATION_ERROR') AS fires,
            CASE WHEN is_deny THEN 'BLOCKED'
                WHEN logged = 'INVALIDATION_ERROR' AND is_required THEN 'INVALIDATION_ERROR'
                WHEN is_cache AND NOT ({declines or "false"})
                    AND (varying_rule.vary_set IS NULL OR vary IS NOT NULL) THEN NULL
                WHEN logged = 'ERROR' THEN 'ERROR'
                WHEN rule < 0 THEN 'PASSTHROUGH' ELSE 'BYPASS' END AS status
        FROM placed JOIN decision USING (ruleset, shape)
        LEFT JOIN varying_rule USING (rule)
        LEFT JOIN varied ON varied.vary_set = varying_rule.vary_set AND varied.vary_values = {vary_values}
        """  # noqa: S608
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
    """Create ``played`` with the outcome of each cache request."""
    candidates = connection.execute(_CANDIDATES).to_arrow_table()
    chain = find_executions(candidates, lifetimes)
    owners = candidates.select(["n", "lane", "requested_at"]).append_column("owner", chain.owners)
    numbers = pa.arange(0, owners.num_rows)  # type: ignore[attr-defined]
    places = pa.arange(0, chain.executions.num_rows)  # type: ignore[attr-defined]
    executions = chain.executions.append_column("execution", places)
    with registered(connection, candidate=owners.append_column("position", numbers), execution=executions):
        connection.execute(_PLAYED)


#: The cache requests by key: one integer for rule, restart, the values that results vary by, and identity.
_CANDIDATES: Final = f"""
    WITH size AS (SELECT (SELECT count(*) FROM pair) AS pairs, (SELECT count(*) FROM query_hash) AS hashes),
    part AS (
        SELECT row_number() OVER () AS part, rule, restart, vary FROM decided WHERE status IS NULL
        GROUP BY rule, restart, vary
    ),
    candidate AS (
        SELECT n, requested_at, work_ms, is_failing, rule, restart, vary, {BY_IDENTITY} AS lane, identity
        FROM decided WHERE status IS NULL AND kind <> 'open'
        UNION ALL
        SELECT n, requested_at, work_ms, is_failing, rule, restart, vary, {OPEN_MERGED}, pairs + hashes + pair
        FROM decided, size WHERE status IS NULL AND kind = 'open'
        UNION ALL
        SELECT n, requested_at, work_ms, is_failing, rule, restart, vary, {KNOWN_MERGED},
            2 * pairs + hashes + pair
        FROM decided, size WHERE status IS NULL AND kind = 'known'
    )
    SELECT n, lane, requested_at, work_ms::BIGINT AS work_ms, is_failing::BIGINT AS is_failing, rule,
        part * (3 * pairs + hashes + 1) + identity AS key
    FROM candidate JOIN part USING (rule, restart, vary), size ORDER BY key, n
"""  # noqa: S608

#: A failing request starts no execution, so it may come after the last entry has expired.
_PLAYED: Final = f"""
    CREATE OR REPLACE TEMP TABLE played AS
    SELECT n, lane,
        CASE WHEN last.execution IS NULL THEN 'ERROR'
            WHEN candidate.position = last.position THEN if(last.reason = {REVALIDATION}, 'HIT', 'MISS')
            WHEN requested_at < last.born THEN if(requested_at < before.stale_until, 'HIT', 'HOLD')
            WHEN requested_at < last.stale_until THEN 'HIT'
            ELSE 'ERROR' END AS status,
        status = 'HIT' AND (
            requested_at < last.born OR candidate.position = last.position
            OR requested_at >= last.fresh_until
        ) AS is_stale,
        candidate.position = last.position AND last.reason = {REVALIDATION} AS is_revalidation,
        CASE WHEN status = 'MISS' THEN last.reason END AS reason,
        CASE WHEN status <> 'HIT' THEN NULL
            WHEN requested_at < last.born OR candidate.position = last.position THEN before.execution
            ELSE last.execution END AS entry,
        if(entry = last.execution, last.started, before.started) AS started,
        if(entry = last.execution, last.born, before.born) AS born
    FROM candidate
    LEFT JOIN execution AS last ON last.execution = candidate.owner
    LEFT JOIN execution AS before ON before.execution = last.older
"""  # noqa: S608
