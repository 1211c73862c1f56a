"""Rule effectiveness of a year. Contract: "Summary records"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from analytics.summaries.numbers import mean, rate
from analytics.summaries.rollup_schema import LATEST_ORDER
from logs.definitions import NOT_CACHED
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from analytics.summaries.rollups import Rollups

_RULES: Final = f"""
    SELECT rule,
        arg_max_null(latest_rule_name, {LATEST_ORDER}) AS name,
        count({{queries}}) AS queries,
        sum(entries)::BIGINT AS entries,
        sum(hits)::BIGINT AS hits,
        sum(misses)::BIGINT AS misses,
        sum(not_cached)::BIGINT AS not_cached,
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


class RuleRecord(JsonStruct):
    """One rule in a year, or in some days."""

    rule_id: str
    rule_name: str | None
    queries_matched: Count
    total_executions: Count
    cache_hits: Count
    cache_misses: Count
    hit_rate: Annotated[float, Meta(ge=0, le=1)]
    warehouse_time_saved_ms: Annotated[
        int,
        Meta(
            description="Estimated: each hit counts with the mean time of the rule's misses. "
            "`getSavings` counts it by statement."
        ),
    ]
    # Both are absent from documents of earlier versions.
    requests: Annotated[Count | None, Meta(description="Log entries of the rule, of every status.")] = None
    not_cached: Annotated[Count | None, Meta(description=f"Of `cacheMisses`: {NOT_CACHED.text}.")] = None

    @property
    def stored_misses(self) -> int:
        """The requests with the status MISS."""
        return self.cache_misses - (self.not_cached or 0)

    @property
    def others(self) -> int:
        """The log entries that count as no request: they waited, failed or were refused."""
        return max((self.requests or 0) - self.total_executions, 0)


class RuleEffectiveness(JsonStruct):
    """What each rule did in a year."""

    total_queries: Count
    uncached_queries: Count
    bypassed_queries: Count
    rules: list[RuleRecord]


def rules_document(rollups: Rollups) -> RuleEffectiveness:
    """Return the hits, misses and saved warehouse time of each rule from the ``rollups`` of a year."""
    counts = rollups.row(_STATEMENTS)
    return RuleEffectiveness(
        total_queries=counts["total"],
        uncached_queries=counts["uncached"],
        bypassed_queries=counts["bypassed"],
        rules=count_rules(rollups),
    )


def count_rules(rollups: Rollups) -> list[RuleRecord]:
    """Return the counts of each rule, the rule with the most hits and misses first."""
    # One part has a row for each statement of a rule.
    queries = "statement" if rollups.parts == 1 else "DISTINCT statement"
    return [_rule(row) for row in rollups.rows(_RULES.format(queries=queries))]


def _rule(row: dict[str, Any]) -> RuleRecord:
    hits, misses = row["hits"], row["misses"]
    return RuleRecord(
        rule_id=row["rule"],
        rule_name=row["name"],
        queries_matched=row["queries"],
        total_executions=hits + misses,
        cache_hits=hits,
        cache_misses=misses,
        hit_rate=rate(hits, hits + misses),
        # A hit saves the mean time of the rule's own misses. Only the product is rounded.
        warehouse_time_saved_ms=mean(hits * row["miss_warehouse_sum"], row["miss_warehouse_count"]),
        requests=row["entries"],
        not_cached=row["not_cached"],
    )
