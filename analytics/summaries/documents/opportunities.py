"""Cache opportunities of a year: statements whose caching would save warehouse time.

Contract: "Summary records".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.summaries.numbers import mean
from analytics.summaries.rollup_schema import NOT_CACHED_SUM
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from analytics.summaries.rollups import Rollups

#: The maximum length of each of the three lists.
LIST_LENGTH: Final = 50

_REPEAT_MISSES: Final = "misses >= 3 AND misses > hits"
_HIGH_COST: Final = "uncached >= 2"
_LOW_HIT_RATE: Final = (
    "hits + misses + uncached >= 20 AND hits + misses > 0 AND 5 * hits < hits + misses + uncached"
)


class Opportunity(JsonStruct):
    """One statement, and the change that would help."""

    query_hash: str
    statement: str
    execution_count: Count
    cache_misses: Count
    total_warehouse_time_ms: int
    matched_rule: str | None
    suggested_action: str


class CacheOpportunities(JsonStruct):
    """Statements that a change of the rules could serve from the cache."""

    repeat_misses: list[Opportunity]
    high_cost_uncached: list[Opportunity]
    low_hit_rate: list[Opportunity]


def opportunities_document(rollups: Rollups, *, text_file: Callable[[date], str]) -> CacheOpportunities:
    """Return three lists of the statements that would save the most warehouse time if they were cached.

    Args:
        rollups: of a year. Merged rollups do not have the texts of statements.
        text_file: returns the address of the statement table of a day, which has the texts.
    """
    repeat_misses = _choose(rollups, _REPEAT_MISSES)
    high_cost = _choose(rollups, _HIGH_COST, only_uncached=True)
    low_hit_rate = _choose(rollups, _LOW_HIT_RATE)
    # Read the texts from the day of each statement's latest entry.
    latest = {row["hash"]: row["day"] for row in (*repeat_misses, *high_cost, *low_hit_rate)}
    sql = rollups.statement_texts([text_file(day) for day in sorted(set(latest.values()))], list(latest))
    return CacheOpportunities(
        repeat_misses=[_entry(row, sql, _repeat_misses_action(row)) for row in repeat_misses],
        high_cost_uncached=[_entry(row, sql, _high_cost_action(row)) for row in high_cost],
        low_hit_rate=[_entry(row, sql, _low_hit_rate_action(row)) for row in low_hit_rate],
    )


def _choose(rollups: Rollups, condition: str, *, only_uncached: bool = False) -> list[dict[str, Any]]:
    executions = "uncached" if only_uncached else "hits + misses + uncached"
    missed = "uncached" if only_uncached else "misses + uncached"
    time = "uncached_warehouse_sum" if only_uncached else "warehouse_sum"
    # The latest entry of a statement is also the latest of its rule and the statement, which has the name.
    return rollups.rows(
        f"""
        SELECT chosen.*, latest_rule_name AS rule_name FROM (
            SELECT statement, replace(statement::VARCHAR, '-', '') AS hash, hits, misses,
                {executions} AS executions, {missed} AS missed, coalesce({time}, 0) AS time,
                latest_rule AS rule, latest_day AS day
            FROM (SELECT *, {NOT_CACHED_SUM} AS uncached FROM <statements>) WHERE {condition}
            ORDER BY time DESC, statement LIMIT {LIST_LENGTH}
        ) AS chosen LEFT JOIN (SELECT statement, rule, latest_rule_name FROM <rules>) USING (statement, rule)
        ORDER BY time DESC, statement
        """  # noqa: S608  # only constants
    )


def _entry(row: dict[str, Any], sql: Mapping[str, str], action: str) -> Opportunity:
    return Opportunity(
        query_hash=row["hash"],
        statement=sql[row["hash"]],
        execution_count=row["executions"],
        cache_misses=row["missed"],
        total_warehouse_time_ms=row["time"],
        matched_rule=row["rule"],
        suggested_action=action,
    )


def _rule(row: dict[str, Any]) -> str:
    """Return the rule by its name, or by its id if the log has no name."""
    if row["rule"] is None:
        return "the rule that caches it"
    return f"rule {row['rule']}" if row["rule_name"] is None else f"rule “{row['rule_name']}”"


def _repeat_misses_action(row: dict[str, Any]) -> str:
    return (
        f"Raise the TTL of {_rule(row)}, or invalidate it less often: it had {row['misses']} misses and "
        f"{row['hits']} hits, and each further hit saves about "
        f"{mean(row['time'], row['missed'])} ms of warehouse time."
    )


def _high_cost_action(row: dict[str, Any]) -> str:
    change = (
        "Add a rule that caches this statement"
        if row["rule"] is None
        else f"Let {_rule(row)} cache this statement"
    )
    return (
        f"{change}: it ran {row['executions']} times on the warehouse without caching. If only the first "
        f"execution did, that would save up to {row['time'] - mean(row['time'], row['executions'])} ms."
    )


def _low_hit_rate_action(row: dict[str, Any]) -> str:
    return (
        f"Widen the key or raise the TTL of {_rule(row)}: only {row['hits']} of {row['executions']} "
        f"executions were hits, and each further hit saves about {mean(row['time'], row['missed'])} ms of "
        "warehouse time."
    )
