"""Bounds of hits and saved time where the log hides the literals of statements.

Section "Bounds" of the definition (docs/replay.md).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from analytics.replay.arrays import make_schema, read_numbers, registered
from analytics.replay.outcome import KNOWN_MERGED, OPEN_MERGED
from logs.definitions import HIT, STORED_MISS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.chain import Lifetime

#: With fewer groups of known literals, there is no likely position.
_MIN_GROUPS: Final = 3


@dataclass(frozen=True, slots=True)
class Bounds:
    """The upper bounds of each rule, by its index, and the likely position between the bounds.

    Attributes:
        hits, saved_ms: upper bound minus lower bound.
        position: the median position of the true value between the bounds (0 to 1) in groups whose literals
            are known; None if there are too few.
    """

    hits: Mapping[int, int] = field(default_factory=dict)
    saved_ms: Mapping[int, int] = field(default_factory=dict)
    position: float | None = None


def find_bounds(connection: DuckDBPyConnection, table: str, lifetimes: Sequence[Lifetime]) -> Bounds:
    """Compute the bounds for ``table``, the outcomes of the last call of `play`.

    Requests that may differ only in hidden literals are a group: they share rule, restart, the values
    that results vary by, and pair.
    """
    certain = _count_certain_misses(connection, table, lifetimes)
    is_hit, is_miss = HIT.of("status"), STORED_MISS.of("status")
    with registered(connection, certain=certain):
        connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE bounded_group AS
            WITH merged AS (
                SELECT rule, restart, vary, pair,
                    count(*) FILTER (lane = {OPEN_MERGED}) AS open_misses,
                    count(*) FILTER (lane = {KNOWN_MERGED}) AS known_misses
                FROM played JOIN {table} AS whole USING (n)
                WHERE lane <> 0 AND {STORED_MISS.of("played.status")} AND whole.is_counted
                GROUP BY rule, restart, vary, pair
            ), grouped AS (
                SELECT rule, restart, vary, pair, any_value(mean_ms) AS mean_ms,
                    count(*) FILTER (is_counted) AS requests,
                    count(*) FILTER (is_counted AND {is_hit}) AS hits,
                    count(*) FILTER (is_counted AND {is_miss} AND kind = 'known') AS own_misses,
                    bool_or(kind = 'open') AS has_open
                FROM {table} WHERE is_cached AND kind <> 'exact'
                GROUP BY rule, restart, vary, pair
            )
            SELECT rule, restart, vary, pair, mean_ms, hits, has_open, requests - coalesce(
                    certain.misses,
                    CASE WHEN has_open THEN greatest(own_misses, coalesce(open_misses, 0))
                        ELSE coalesce(known_misses, 0) END
                ) AS high
            FROM grouped
            LEFT JOIN merged USING (rule, restart, vary, pair)
            LEFT JOIN certain USING (rule, restart, vary, pair)
            """  # noqa: S608
        )
    # The share of a group's open misses that are hits at the upper bound.
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE chance_of_{table} AS
        SELECT n, least((high - hits) / count(*) OVER (PARTITION BY rule, restart, vary, pair), 1) AS chance
        FROM {table} JOIN bounded_group USING (rule, restart, vary, pair)
        WHERE has_open AND high > hits AND is_cached AND is_counted AND kind = 'open' AND {is_miss}
        """  # noqa: S608
    )
    rows = connection.execute(
        """
        SELECT rule, sum(high - hits)::BIGINT, sum((high - hits) * mean_ms)::BIGINT
        FROM bounded_group WHERE has_open GROUP BY rule
        """
    ).fetchall()
    known_groups, position = connection.execute(
        "SELECT count(*), median(hits / high) FROM bounded_group WHERE NOT has_open AND high > 0"
    ).fetchall()[0]
    return Bounds(
        hits={rule: hits for rule, hits, _ in rows},
        saved_ms={rule: saved for rule, _, saved in rows},
        position=position if known_groups >= _MIN_GROUPS else None,
    )


def _count_certain_misses(
    connection: DuckDBPyConnection, table: str, lifetimes: Sequence[Lifetime]
) -> pa.Table:
    """Count the certain misses of each group whose rule serves stale results.

    Under such a rule, merged requests may need more executions than the real ones, so merging gives no bound.
    """
    rules = [index for index, lifetime in enumerate(lifetimes) if lifetime.stale_ms]
    requests = connection.execute(
        f"""
        SELECT rule, restart, vary, pair, requested_at, requested_at + work_ms AS done,
            is_counted::BIGINT AS is_counted
        FROM {table}
        WHERE is_cached AND kind <> 'exact' AND list_contains($rules::BIGINT[], rule)
        ORDER BY rule, restart, vary, pair, n
        """,  # noqa: S608
        {"rules": rules},
    ).to_arrow_table()
    return _count_by_group(requests, lifetimes)


def _count_by_group(requests: pa.Table, lifetimes: Sequence[Lifetime]) -> pa.Table:
    rules, restarts, varied, pairs, times, done, counted = (
        read_numbers(requests[name])
        for name in ("rule", "restart", "vary", "pair", "requested_at", "done", "is_counted")
    )
    groups: dict[tuple[int, ...], int] = {}
    previous = None
    before = 0
    for index, group in enumerate(zip(rules, restarts, varied, pairs, strict=True)):
        lifetime = lifetimes[group[0]]
        is_certain = (
            group != previous
            or times[index] >= before + lifetime.ttl_ms + lifetime.stale_ms
            or bisect_right(lifetime.markers, times[index]) > bisect_right(lifetime.markers, before)
        )
        groups[group] = groups.get(group, 0) + (is_certain and counted[index])
        previous, before = group, done[index]
    rows = [(*group, misses) for group, misses in groups.items()]
    return pa.Table.from_pylist([dict(zip(_CERTAIN.names, row, strict=True)) for row in rows], _CERTAIN)


_CERTAIN: Final = make_schema(**dict.fromkeys(("rule", "restart", "vary", "pair", "misses"), pa.int64()))
