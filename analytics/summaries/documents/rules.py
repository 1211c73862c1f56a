"""Rule effectiveness of a year. Contract: "Summary records"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.summaries.numbers import mean, rate
from analytics.summaries.rollup_schema import LATEST_ORDER

if TYPE_CHECKING:
    from analytics.summaries.rollups import Rollups

_RULES: Final = f"""
    SELECT rule,
        arg_max_null(latest_rule_name, {LATEST_ORDER}) AS name,
        count(statement) AS queries,
        sum(hits)::BIGINT AS hits,
        sum(misses)::BIGINT AS misses,
        coalesce(sum(miss_warehouse_sum), 0)::BIGINT AS miss_warehouse_sum,
        sum(miss_warehouse_count)::BIGINT AS miss_warehouse_count
    FROM <rules> GROUP BY rule ORDER BY sum(hits + misses) DESC, rule
"""  # noqa: S608  # only constants

_STATEMENTS: Final = """
    SELECT count(*) AS total,
        count(*) FILTER (passthroughs > 0) AS uncached,
        count(*) FILTER (bypasses > 0) AS bypassed
    FROM <statements>
"""


def rules_document(rollups: Rollups) -> dict[str, Any]:
    """Return the hits, misses and saved warehouse time of each rule from the ``rollups`` of a year."""
    counts = rollups.row(_STATEMENTS)
    return {
        "totalQueries": counts["total"],
        "uncachedQueries": counts["uncached"],
        "bypassedQueries": counts["bypassed"],
        "rules": count_rules(rollups),
    }


def count_rules(rollups: Rollups) -> list[dict[str, Any]]:
    """Return the counts of each rule, the rule with the most requests first.

    If the rollups have several parts, ``queriesMatched`` counts a statement once in each part.
    """
    return [_rule(row) for row in rollups.rows(_RULES)]


def _rule(row: dict[str, Any]) -> dict[str, Any]:
    hits, misses = row["hits"], row["misses"]
    return {
        "ruleId": row["rule"],
        "ruleName": row["name"],
        "queriesMatched": row["queries"],
        "totalExecutions": hits + misses,
        "cacheHits": hits,
        "cacheMisses": misses,
        "hitRate": rate(hits, hits + misses),
        # A hit saves the mean time of the rule's own misses. Only the product is rounded.
        "warehouseTimeSavedMs": mean(hits * row["miss_warehouse_sum"], row["miss_warehouse_count"]),
    }
