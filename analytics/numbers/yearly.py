"""The documents of years and of the whole history. Contract: "Summary records"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from analytics.numbers.tables import LATEST_ORDER, NOT_CACHED_SUM, mean, rate
from logs.definitions import NOT_CACHED
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, days_before, format_timestamp

if TYPE_CHECKING:
    from analytics.numbers.merged import Rollups


#: The activity covers this many days, up to the last day with data.
ACTIVITY_DAYS: Final = 365

_ACTIVITY: Final = """
    SELECT strftime(day, '%Y/%m/%d') AS date, queries, users, hits AS cacheHits, total AS totalHits,
        coalesce(hit_bytes, 0)::HUGEINT AS dataTransfer, stored_size::HUGEINT AS cacheSize,
        stored_elements AS cacheElements
    FROM <activity> ORDER BY day
"""

_STORED_OR_SERVED: Final = "SELECT count(*) AS queries FROM <statements> WHERE is_kept"
_USERS: Final = "SELECT count(DISTINCT user_name) AS users FROM <user_activity>"


class DayActivity(JsonStruct):
    """One day of a year."""

    date: Annotated[str, Meta(extra_json_schema={"pattern": r"^\d{4}/\d{2}/\d{2}$"})]
    queries: Count
    users: Count
    cache_hits: Count
    total_hits: Count
    data_transfer: Annotated[Count, Meta(description="Bytes served from cache.")]
    cache_size: Annotated[Count, Meta(description="Bytes of new cache entries.")]
    cache_elements: Annotated[Count, Meta(description="New cache entries.")]


class YearlySummary(JsonStruct):
    """The requests of one year, by day."""

    report_id: str = msgspec.field(name="tenantSummaryReportID")
    tenant_id: UUID
    report_years: list[str] = msgspec.field(name="reportyears")
    total_users: Count
    total_queries: Annotated[Count, Meta(description="Distinct statements that were stored or served.")]
    total_cache_hits: Count
    total_hits: Count
    cache_size: Count
    cache_elements: Count
    activity: list[DayActivity] = msgspec.field(name="last365daysQueryActivity")


def daily_activity(rollups: Rollups) -> list[DayActivity]:
    """Return one entry for each day with data in ``rollups``, oldest first."""
    return msgspec.convert(rollups.rows(_ACTIVITY), list[DayActivity])


def first_activity_day(last: date) -> date:
    """Return the first of the 365 days that end on ``last``."""
    return days_before(last, ACTIVITY_DAYS - 1)


def year_document(
    rollups: Rollups, *, tenant: UUID, year: int, activity: Sequence[DayActivity]
) -> YearlySummary:
    """Return the yearly summary.

    Args:
        rollups: the merged rollups of ``year``.
        activity: `daily_activity` of the year before, then of ``year``. The summary leaves out days before
            `first_activity_day`.
    """
    own = [entry for entry in activity if entry.date.startswith(f"{year:04}/")]
    last = date.fromisoformat(own[-1].date.replace("/", "-"))
    first = first_activity_day(last).isoformat().replace("-", "/")
    return YearlySummary(
        report_id=f"{tenant}-{year:04}",
        tenant_id=tenant,
        report_years=[f"{year:04}"],
        total_users=rollups.row(_USERS)["users"],
        total_queries=rollups.row(_STORED_OR_SERVED)["queries"],
        total_cache_hits=sum(entry.cache_hits for entry in own),
        total_hits=sum(entry.total_hits for entry in own),
        cache_size=sum(entry.cache_size for entry in own),
        cache_elements=sum(entry.cache_elements for entry in own),
        activity=[entry for entry in activity if entry.date >= first],
    )


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
    return [_rule_record(row) for row in rollups.rows(_RULES.format(queries=queries))]


def _rule_record(row: dict[str, Any]) -> RuleRecord:
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


def _name_rule(row: dict[str, Any]) -> str:
    """Return the rule by its name, or by its id if the log has no name."""
    if row["rule"] is None:
        return "the rule that caches it"
    return f"rule {row['rule']}" if row["rule_name"] is None else f"rule “{row['rule_name']}”"


def _repeat_misses_action(row: dict[str, Any]) -> str:
    return (
        f"Raise the TTL of {_name_rule(row)}, or invalidate it less often: it had {row['misses']} misses and "
        f"{row['hits']} hits, and each further hit saves about "
        f"{mean(row['time'], row['missed'])} ms of warehouse time."
    )


def _high_cost_action(row: dict[str, Any]) -> str:
    change = (
        "Add a rule that caches this statement"
        if row["rule"] is None
        else f"Let {_name_rule(row)} cache this statement"
    )
    return (
        f"{change}: it ran {row['executions']} times on the warehouse without caching. If only the first "
        f"execution did, that would save up to {row['time'] - mean(row['time'], row['executions'])} ms."
    )


def _low_hit_rate_action(row: dict[str, Any]) -> str:
    return (
        f"Widen the key or raise the TTL of {_name_rule(row)}: only {row['hits']} of {row['executions']} "
        f"executions were hits, and each further hit saves about {mean(row['time'], row['missed'])} ms of "
        "warehouse time."
    )


_USER_SUMS: Final = """
    WITH sums AS (
        SELECT user_name, sum(hits)::BIGINT AS cacheHits, sum(total)::BIGINT AS totalHits,
            coalesce(sum(time_sum), 0)::HUGEINT AS time_sum, sum(time_count)::BIGINT AS time_count,
            coalesce(min(time_min), 0) AS minResponseTime, coalesce(max(time_max), 0) AS maxResponseTime
        FROM <user_activity> GROUP BY user_name
    ),
    statements AS (
        SELECT user_name, count(DISTINCT statement) AS queries FROM <user_statements> GROUP BY user_name
    )
    SELECT sums.*, user_name AS userId, coalesce(queries, 0) AS uniqueQueries
    FROM sums LEFT JOIN statements USING (user_name) ORDER BY totalHits DESC, user_name
"""


class UserRecord(JsonStruct):
    """One user of the whole history."""

    user_id: str
    unique_queries: Count
    cache_hits: Count
    total_hits: Count
    average_response_time: Count
    min_response_time: Count
    max_response_time: Count


class UsersSummary(JsonStruct):
    """All users of the whole history."""

    tenant_id: UUID
    generated_at: Timestamp
    total_users: Count
    users: list[UserRecord]


def users_document(rollups: Rollups, *, tenant: UUID, generated_at: datetime) -> UsersSummary:
    """Return a record for each user with a log entry, from the ``rollups`` of all years."""
    users = [
        msgspec.convert({**row, "averageResponseTime": mean(row["time_sum"], row["time_count"])}, UserRecord)
        for row in rollups.rows(_USER_SUMS)
    ]
    return UsersSummary(
        tenant_id=tenant,
        generated_at=format_timestamp(generated_at),
        total_users=len(users),
        users=users,
    )
