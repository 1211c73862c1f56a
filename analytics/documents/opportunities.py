"""Cache opportunities over a year: where a change of rules would save warehouse time.

Contract: "Summary records".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.numbers import mean, rate

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.source import Rollups

#: Entries in each of the three lists, at most.
LIST_LENGTH: Final = 50

_REPEAT_MISSES: Final = "misses >= 3 AND misses > hits"
_HIGH_COST: Final = "uncached >= 2"
_LOW_HIT_RATE: Final = (
    "hits + misses + uncached >= 20 AND hits + misses > 0 AND 5 * hits < hits + misses + uncached"
)


def opportunities_document(rollups: Rollups) -> dict[str, Any]:
    """The statements that cost most for want of caching, in three lists."""
    return {
        "repeatMisses": _entries(rollups, _REPEAT_MISSES, _repeat_misses_action),
        "highCostUncached": _entries(rollups, _HIGH_COST, _high_cost_action, uncached_alone=True),
        "lowHitRate": _entries(rollups, _LOW_HIT_RATE, _low_hit_rate_action),
    }


def _entries(
    rollups: Rollups,
    condition: str,
    action: Callable[[dict[str, Any]], str],
    *,
    uncached_alone: bool = False,
) -> list[dict[str, Any]]:
    executions = "uncached" if uncached_alone else "hits + misses + uncached"
    missed = "uncached" if uncached_alone else "misses + uncached"
    time = "uncached_warehouse" if uncached_alone else "warehouse"
    rows = rollups.rows(
        f"""
        WITH candidate AS (
            SELECT statement,
                sum(hits)::BIGINT AS hits,
                sum(misses)::BIGINT AS misses,
                sum(bypasses + passthroughs)::BIGINT AS uncached,
                coalesce(sum(warehouse_sum), 0)::BIGINT AS warehouse,
                coalesce(sum(uncached_warehouse_sum), 0)::BIGINT AS uncached_warehouse
            FROM groups WHERE statement IS NOT NULL GROUP BY statement
        ),
        chosen AS (
            SELECT statement, hits, misses, {executions} AS executions, {missed} AS missed, {time} AS time
            FROM candidate WHERE {condition}
            ORDER BY time DESC, statement LIMIT {LIST_LENGTH}
        ),
        ruled AS (
            SELECT statement, arg_max_null(rule, latest) AS rule
            FROM groups SEMI JOIN chosen USING (statement) GROUP BY statement
        ),
        texts AS (
            SELECT statement, any_value(sql) AS sql
            FROM statements SEMI JOIN chosen USING (statement) GROUP BY statement
        )
        SELECT lower(hex(statement)) AS hash, sql, executions, missed, time, rule, hits, misses
        FROM chosen JOIN ruled USING (statement) JOIN texts USING (statement)
        ORDER BY time DESC, statement
        """  # noqa: S608  # constants alone
    )
    return [
        {
            "queryHash": row["hash"],
            "statement": row["sql"],
            "executionCount": row["executions"],
            "cacheMisses": row["missed"],
            "totalWarehouseTimeMs": row["time"],
            "matchedRule": row["rule"],
            "suggestedAction": action(row),
        }
        for row in rows
    ]


def _repeat_misses_action(row: dict[str, Any]) -> str:
    subject = "the rule that caches it" if row["rule"] is None else f"rule {row['rule']}"
    return (
        f"Raise the TTL of {subject}, or invalidate it less often: {row['misses']} misses stand against "
        f"{row['hits']} hits, and each miss turned into a hit saves about "
        f"{mean(row['time'], row['executions'])} ms of warehouse time."
    )


def _high_cost_action(row: dict[str, Any]) -> str:
    change = (
        "Add a rule that caches this statement"
        if row["rule"] is None
        else f"Let rule {row['rule']} cache this statement"
    )
    return (
        f"{change}: it went to the warehouse {row['executions']} times uncached, and serving all but "
        f"the first from cache saves up to {row['time'] - mean(row['time'], row['executions'])} ms."
    )


def _low_hit_rate_action(row: dict[str, Any]) -> str:
    percent = round(100 * rate(row["hits"], row["executions"]))
    subject = "the rule that caches it" if row["rule"] is None else f"rule {row['rule']}"
    return (
        f"Widen the key or raise the TTL of {subject}: {percent} % of {row['executions']} executions "
        f"were hits, and each further hit saves about {mean(row['time'], row['executions'])} ms of "
        "warehouse time."
    )
