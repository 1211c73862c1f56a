"""The requests of some days: by day, by rule and by statement, from the rollups. Contract: Analytics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self, TypeAlias, TypeVar
from uuid import UUID

import msgspec
from django.db.models import Max, Min
from msgspec import Meta

from analytics.models import DayRollup
from analytics.numbers.merged import MAIN_RULES, Rollups, month_of, period_bounds, year_of
from analytics.numbers.store import local_tables, read_merged_rollups, shared_engine
from analytics.numbers.tables import LATEST_ORDER, NOT_CACHED_SUM, ROLLUP_VERSION, STATEMENTS
from analytics.numbers.yearly import RuleRecord, count_rules
from logs.columns import CACHE_STATUSES
from logs.definitions import NOT_CACHED, STORED_MISS
from rules.conditions.patterns import fold_case, fold_case_sql
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, days_before, now, show_time

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from tenantadmin.lib.objectstore import ObjectStore


#: An answer covers at most this many days.
MAX_DAYS: Final = 366
#: The days of an answer, if they are not given.
DEFAULT_DAYS: Final = 28
#: A shorter period is compared with the week before it, because days of the week differ.
_LEAST_DAYS_BEFORE: Final = 7

_Number = TypeVar("_Number", int, float)
_Rate = Annotated[float, Meta(ge=0, le=1)] | None


@dataclass(frozen=True, slots=True)
class Range:
    """A range of days up to ``last``, and the range before it. All ends are included."""

    days: int
    first: date
    last: date
    before_first: date
    before_last: date

    @classmethod
    def ending(cls, last: date, *, days: int) -> Self:
        """Return the ``days`` days that end with ``last``. The calendar begins in the year 1.

        The range before a whole month is the month before it, and before a whole year the year before it.
        """
        first, before_last = days_before(last, days - 1), days_before(last, days)
        if (first, last) == period_bounds(month_of(last)):
            before_first = before_last.replace(day=1)
        elif (first, last) == period_bounds(year_of(last)):
            before_first = before_last.replace(month=1, day=1)
        else:
            before_first = days_before(last, days + max(days, _LEAST_DAYS_BEFORE) - 1)
        return cls(days, first, last, before_first, before_last)

    @classmethod
    def of(cls, first: date | None, last: date | None) -> Self:
        """Return the days from ``first`` to ``last``. By default these are `DEFAULT_DAYS`, up to today."""
        end = last or now().date()
        return cls.ending(end, days=DEFAULT_DAYS if first is None else (end - first).days + 1)


class ActivitySums(JsonStruct):
    """The requests of a period, by what the cache did. Other requests count nowhere."""

    hits: Count
    stored_misses: Annotated[
        Count, Meta(description=f"{STORED_MISS.text}: the warehouse gave the result, which was stored.")
    ]
    not_cached: Annotated[Count, Meta(description=f"{NOT_CACHED.text}.")]
    warehouse_ms: Count

    @property
    def requests(self) -> int:
        return self.hits + self.misses

    @property
    def misses(self) -> int:
        """The contract's ``cacheMisses``."""
        return self.stored_misses + self.not_cached


class ActivityDay(ActivitySums):
    """The requests of one day (UTC)."""

    day: date


class ActivityTotal(ActivitySums):
    """The requests of a period. Means are null without requests."""

    days: Annotated[Count, Meta(description="Days with requests; no other counts.")]
    hit_rate: _Rate
    hit_response_ms: int | None
    miss_response_ms: Annotated[int | None, Meta(description="Also of requests that are not cached.")]
    cached_bytes: float


class ActivityBefore(JsonStruct):
    """The period that is compared."""

    from_: date
    to: date
    days: Annotated[Count, Meta(description="Days with requests; no other counts.")]
    text: Annotated[
        str, Meta(description="What `change` compares, or why there is none. Empty without requests.")
    ]


class ActivityChange(JsonStruct):
    """How a mean day with requests differs from a mean day of the period before.

    Rates and response times are the difference of the two periods.
    """

    hits: float
    stored_misses: float
    not_cached: float
    requests: float
    warehouse_ms: float
    cached_bytes: float
    hit_rate: float | None
    hit_response_ms: int | None
    miss_response_ms: int | None


class Activity(JsonStruct):
    """The requests of a period by day, and their change against the days before."""

    from_: date
    to: date
    first_day: Annotated[date | None, Meta(description="The first day of the log with entries.")]
    last_day: Annotated[date | None, Meta(description="The last day of the log with entries.")]
    days: Annotated[list[ActivityDay], Meta(description="The days with entries.")]
    total: ActivityTotal
    before: ActivityBefore
    change: Annotated[
        ActivityChange | None,
        Meta(description="Null if the period before has requests on less than half as many days."),
    ]


def read_activity(tenant: UUID, *, first: date | None = None, last: date | None = None) -> Activity:
    """Return the requests of the days from ``first`` to ``last``.

    By default, these are the `DEFAULT_DAYS` days up to the last day with entries, or up to today.
    """
    log = DayRollup.objects.filter(tenant_id=tenant).aggregate(first=Min("day"), last=Max("day"))
    chosen = Range.of(first, last or log["last"])
    end = chosen.last
    rows = list(
        DayRollup.objects.filter(tenant_id=tenant, day__range=(chosen.before_first, end)).order_by("day")
    )
    own = [row for row in rows if row.day >= chosen.first]
    total, before = _total_of(own), _total_of([row for row in rows if row.day < chosen.first])
    return Activity(
        from_=chosen.first,
        to=end,
        first_day=log["first"],
        last_day=log["last"],
        days=[_day_of(row) for row in own],
        total=total,
        before=ActivityBefore(
            from_=chosen.before_first,
            to=chosen.before_last,
            days=before.days,
            text=_comparison(chosen, total.days, before.days),
        ),
        change=_change_of(total, before) if is_fair(total.days, before.days) else None,
    )


def is_fair(days: int, before: int) -> bool:
    """Return True if a period can be compared with one before it, by their numbers of days with requests."""
    return 0 < days <= 2 * before


def _comparison(chosen: Range, days: int, before: int) -> str:
    """Describe what the changes of a period with so many ``days`` of requests compare, or why none are."""
    if not days:
        return ""
    span = formats.days_between(chosen.before_first, chosen.before_last, today=now().date())
    if is_fair(days, before):
        text = (
            f"Changes compare the mean day with that of the period before ({span}). The page Savings shows "
            "what was saved in each."
        )
        if days == chosen.days and before == (chosen.before_last - chosen.before_first).days + 1:
            return text
        return (
            f"{text} Days without requests are left out: {days} of this period and {before} of the one "
            "before have some."
        )
    few = f"{before} of its days {'has' if before == 1 else 'have'} requests, too few to compare with"
    return f"Not compared with the period before ({span}): {few if before else 'it has no requests'}."


def _day_of(row: DayRollup) -> ActivityDay:
    not_cached = row.not_cached or 0
    return ActivityDay(
        day=row.day,
        hits=row.hits or 0,
        stored_misses=(row.misses or 0) - not_cached,
        not_cached=not_cached,
        warehouse_ms=row.warehouse_ms or 0,
    )


def _total_of(rows: Sequence[DayRollup]) -> ActivityTotal:
    days = [day for day in map(_day_of, rows) if day.requests]
    hits, misses = sum(day.hits for day in days), sum(day.misses for day in days)
    return ActivityTotal(
        days=len(days),
        hits=hits,
        stored_misses=sum(day.stored_misses for day in days),
        not_cached=sum(day.not_cached for day in days),
        warehouse_ms=sum(day.warehouse_ms for day in days),
        hit_rate=hits / (hits + misses) if hits + misses else None,
        hit_response_ms=_mean([(row.hit_time_sum, row.hit_time_count) for row in rows]),
        miss_response_ms=_mean([(row.miss_time_sum, row.miss_time_count) for row in rows]),
        cached_bytes=sum(row.hit_bytes or 0 for row in rows),
    )


def _change_of(own: ActivityTotal, before: ActivityTotal) -> ActivityChange:
    def daily(name: str) -> float:
        return float(getattr(own, name) / own.days - getattr(before, name) / before.days)

    return ActivityChange(
        hits=daily("hits"),
        stored_misses=daily("stored_misses"),
        not_cached=daily("not_cached"),
        requests=daily("requests"),
        warehouse_ms=daily("warehouse_ms"),
        cached_bytes=daily("cached_bytes"),
        hit_rate=_minus(own.hit_rate, before.hit_rate),
        hit_response_ms=_minus(own.hit_response_ms, before.hit_response_ms),
        miss_response_ms=_minus(own.miss_response_ms, before.miss_response_ms),
    )


def _mean(sums: Sequence[tuple[float | None, int | None]]) -> int | None:
    """Return the mean of sums with their counts, in whole milliseconds."""
    count = sum(one or 0 for _, one in sums)
    return round(sum(one or 0 for one, _ in sums) / count) if count else None


def _minus(own: _Number | None, before: _Number | None) -> _Number | None:
    return None if own is None or before is None else own - before


@dataclass(frozen=True, slots=True)
class RangeFiles:
    """The rollups of a range. ``parts`` map tables to object keys. ``days`` does so for each day."""

    parts: Sequence[Mapping[str, str]] = field(default=())
    days: Mapping[date, Mapping[str, str]] = field(default_factory=dict)


def find_range(*, tenant: UUID, first: date, last: date) -> RangeFiles:
    """Return the rollups of the days from ``first`` to ``last``, in two queries.

    Whole months are one part each. Days that are being rolled up again after an upgrade are left out.
    """
    rows = DayRollup.objects.filter(tenant_id=tenant, day__range=(first, last), version=ROLLUP_VERSION)
    days = dict(rows.order_by("day").values_list("day", "files"))
    whole = {
        month
        for month in map(month_of, days)
        if first <= period_bounds(month)[0] and period_bounds(month)[1] <= last
    }
    merged = {
        month: stored.files
        for month, stored in read_merged_rollups(tenant=tenant, periods=whole).items()
        if stored.version == ROLLUP_VERSION
    }
    single = [files for day, files in days.items() if month_of(day) not in merged]
    # Months first: DuckDB takes the columns of the first file, and days have more columns than months.
    return RangeFiles([*merged.values(), *single], days)


def rules_of(connection: DuckDBPyConnection, store: ObjectStore, range_files: RangeFiles) -> list[RuleRecord]:
    """Return the counts of `count_rules`."""
    return count_rules(_rollups(connection, store, range_files)) if range_files.parts else []


def _rollups(connection: DuckDBPyConnection, store: ObjectStore, range_files: RangeFiles) -> Rollups:
    return Rollups(connection, [local_tables(store, files) for files in range_files.parts])


class RuleActivity(JsonStruct):
    """What each rule did in some days, both ends included (UTC)."""

    from_: date
    to: date
    rules: Annotated[list[RuleRecord], Meta(description="The rule with the most hits and misses first.")]


def read_rule_activity(
    store: ObjectStore, *, tenant: UUID, first: date | None = None, last: date | None = None
) -> RuleActivity:
    """Return what each rule did from ``first`` to ``last``, by default in the days of `read_activity`.

    Raises:
        StoreError, duckdb.Error: the rollups cannot be read.
    """
    if last is None:
        last = DayRollup.objects.filter(tenant_id=tenant).aggregate(last=Max("day"))["last"]
    chosen = Range.of(first, last)
    files = find_range(tenant=tenant, first=chosen.first, last=chosen.last)
    with shared_engine() as engine:
        return RuleActivity(
            from_=chosen.first, to=chosen.last, rules=rules_of(engine.connection, store, files)
        )


StatementOrder: TypeAlias = Literal["warehouse", "requests", "response", "hit-rate"]
#: The value of the filter ``rule`` for what no rule decided.
NO_RULE: Final = "none"
_ORDERS: Final[dict[StatementOrder, str]] = {
    "warehouse": "warehouseExecutionTimeMs DESC NULLS LAST",
    "requests": "hits + storedMisses + notCached DESC, requests DESC",
    "response": "averageResponseTime DESC",
    "hit-rate": "hits / nullif(hits + storedMisses + notCached, 0) NULLS LAST, requests DESC",
}
# Values are variables, because a value in the text could name a table of `Rollups`.
_PART, _RULE, _MAIN, _STATUS = (
    f"getvariable('{name}')::VARCHAR" for name in ("part", "rule", "main_rule", "status")
)
_HASHES: Final = "getvariable('hashes')::VARCHAR[]"
_QUERY: Final = f"""
    SELECT *, count(*) OVER () AS total FROM (
        SELECT replace(statement::VARCHAR, '-', '') AS queryHash,
            max(latest_day) AS lastDay,
            sum(entries)::BIGINT AS requests,
            sum(hits)::BIGINT AS hits,
            sum(misses)::BIGINT AS storedMisses,
            sum({NOT_CACHED_SUM})::BIGINT AS notCached,
            round(sum(time_mean::DOUBLE * entries) / sum(entries))::BIGINT AS averageResponseTime,
            sum(warehouse_sum)::BIGINT AS warehouseExecutionTimeMs,
            arg_max_null(latest_rule, {LATEST_ORDER}) AS matchedRule,
            arg_max_null(latest_status, {LATEST_ORDER}) AS cacheStatus,
            arg_max_null(latest_size, {LATEST_ORDER}) AS responseSize,
            min(first_timestamp) AS first_at,
            max(last_timestamp) AS last_at
        FROM <statements>
        WHERE {_PART} IS NULL OR contains({fold_case_sql("sql")}, {_PART})
        GROUP BY statement
    ) LEFT JOIN (
        SELECT replace(statement::VARCHAR, '-', '') AS queryHash, main_rule AS mainRule FROM {MAIN_RULES}
    ) USING (queryHash)
    WHERE ({_STATUS} IS NULL OR cacheStatus = {_STATUS})
        AND ({_HASHES} IS NULL OR list_contains({_HASHES}, queryHash))
        AND ({_RULE} IS NULL OR coalesce(matchedRule, '{NO_RULE}') = {_RULE})
        AND ({_MAIN} IS NULL OR coalesce(mainRule, '{NO_RULE}') = {_MAIN})
    ORDER BY {{order}}, queryHash LIMIT {{limit}}
"""  # noqa: S608  # only constants


class StatementActivity(JsonStruct):
    """One statement. ``matchedRule``, ``cacheStatus`` and ``responseSize`` are of the latest request."""

    query_hash: Annotated[str, Meta(description="MD5 of the standardized SQL, lower-case hex.")]
    statement: str
    last_day: Annotated[date, Meta(description="The last day (UTC) with a request.")]
    requests: Annotated[Count, Meta(description="Log entries of any status.")]
    hits: Count
    stored_misses: Annotated[Count, Meta(description=STORED_MISS.text)]
    not_cached: Annotated[Count, Meta(description=f"{NOT_CACHED.text}.")]
    average_response_time: Count
    warehouse_execution_time_ms: Annotated[
        int | None, Meta(description="Null if no request reached the warehouse.")
    ]
    matched_rule: str | None
    main_rule: Annotated[
        str | None,
        Meta(
            description="The rule that gave most hits, or decided most requests if there are no hits. "
            "Null if no rule did."
        ),
    ]
    cache_status: Annotated[
        Annotated[str, one_of(CACHE_STATUSES)] | None,
        Meta(description="A value outside the twelve statuses is shown as it was logged."),
    ]
    response_size: int
    first_request_time: Timestamp | None
    last_request_time: Timestamp | None


class StatementList(JsonStruct):
    """The first statements of a period in the order that was asked for."""

    from_: date
    to: date
    total: Annotated[Count, Meta(description="Statements that fit the filters, shown or not.")]
    statements: list[StatementActivity]


@dataclass(frozen=True, slots=True)
class StatementFilter:
    """The statements to list. A condition that is None does not apply."""

    #: A part of the text; case is ignored.
    statement: str | None = None
    #: The id of the rule of the latest request, or `NO_RULE`.
    rule: str | None = None
    #: The id of the rule of `MAIN_RULES`, or `NO_RULE`.
    main_rule: str | None = None
    status: str | None = None
    #: The MD5 of each statement that may be listed.
    hashes: Sequence[str] | None = None

    def values(self) -> dict[str, str | Sequence[str] | None]:
        """Return the values of the variables that the query reads."""
        part = None if self.statement is None else fold_case(self.statement)
        return {
            "part": part,
            "rule": self.rule,
            "main_rule": self.main_rule,
            "status": self.status,
            "hashes": self.hashes,
        }


def list_statements(
    store: ObjectStore,
    *,
    tenant: UUID,
    first: date,
    last: date,
    matching: StatementFilter,
    order: StatementOrder,
    limit: int,
) -> StatementList:
    """Return the first ``limit`` statements of the days from ``first`` to ``last``.

    Raises:
        StoreError, duckdb.Error: the rollups cannot be read.
    """
    days = find_range(tenant=tenant, first=first, last=last).days
    rows, texts = [], {}
    if days:
        files = {day: local_tables(store, tables) for day, tables in days.items()}
        with shared_engine() as engine:
            for name, value in matching.values().items():
                engine.connection.execute(f"SET VARIABLE {name} = ?", [value])
            rollups = Rollups(engine.connection, list(files.values()))
            rows = rollups.rows(_QUERY.format(order=_ORDERS[order], limit=limit))
            used = [files[day][STATEMENTS] for day in sorted({row["lastDay"] for row in rows})]
            texts = rollups.statement_texts(used, [row["queryHash"] for row in rows])
    return StatementList(
        from_=first,
        to=last,
        total=rows[0]["total"] if rows else 0,
        statements=[
            msgspec.convert(
                {
                    **row,
                    "statement": texts[row["queryHash"]],
                    "firstRequestTime": show_time(row["first_at"]),
                    "lastRequestTime": show_time(row["last_at"]),
                },
                StatementActivity,
            )
            for row in rows
        ],
    )
