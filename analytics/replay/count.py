"""Count an outcome by rule, with bounds, hits at risk, and what the warehouse bills.

Sections "Counts", "Bounds", "Risk" and "Billed time" of the definition (docs/replay.md).
"""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from operator import sub
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from analytics.replay.load import NUMBER_OF, make_schema, registered
from analytics.replay.result import Billed, BilledRange, MoneyRange, ReplayBilled
from analytics.replay.sample import RARE_COUNTS, RARE_TIMES, find_margins
from analytics.reports.savings_sql import Bill, bill_days, days_between, fill_savings, join_overlaps, split_by
from analytics.reports.sql import defines, find_changed_tables, learn_views, read_tables
from logs.definitions import (
    BLOCKED,
    BYPASSED,
    EXECUTED,
    FAILED,
    HIT,
    MISS,
    NOT_RECORDED,
    PASSED,
    REFUSED,
    STORED_MISS,
    WAITED,
)
from logs.layout import DAY_MS
from logs.quoting import quote_name, quote_text
from rules.tables.names import NameIndex

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from accounts.tenants.pricing import Pricing
    from analytics.replay.load import Job
    from analytics.replay.play import Lifetime, Outcome
    from analytics.replay.sample import Margins
    from rules.tables.warehouse import WarehouseTables

#: With fewer groups of known literals, there is no likely position.
_MIN_GROUPS: Final = 3


def find_bounds(
    connection: DuckDBPyConnection, table: str, lifetimes: Sequence[Lifetime]
) -> tuple[dict[int, tuple[int, int]], float | None]:
    """Compute the bounds for ``table``, the outcomes of a call of `play`, in ``bounded_group``.

    Return the upper less the lower bound of hits and saved ms by the index of the rule, and the likely
    position between the bounds: the median position of the true value (0 to 1) in groups whose literals are
    known; None if there are too few.

    Requests that may differ only in hidden literals are a group: they share rule, restart, the values
    that results vary by, and pair.
    """
    stale = [
        {"rule": index, "life": lifetime.ttl_ms + lifetime.stale_ms, "markers": lifetime.markers}
        for index, lifetime in enumerate(lifetimes)
        if lifetime.stale_ms
    ]
    is_hit, is_miss = HIT.of("status"), STORED_MISS.of("status")
    is_merged_miss = STORED_MISS.of("merged_status")
    with registered(connection, stale_rule=pa.Table.from_pylist(stale, _STALE)):
        # Under a rule that serves stale results, merged requests may need more executions than the real ones:
        # that gives no bound. Certain are the misses after the result of any execution before is too old.
        connection.execute(
            f"""
            CREATE OR REPLACE TABLE bounded_group AS
            WITH spaced AS (
                SELECT rule, restart, vary, pair, requested_at, is_counted, life,
                    lag(requested_at + work_ms) OVER (
                        PARTITION BY rule, restart, vary, pair ORDER BY n
                    ) AS before
                FROM {table} JOIN stale_rule USING (rule) WHERE is_cached AND kind <> 'exact'
            ), certain AS (
                SELECT spaced.rule, restart, vary, pair, count(*) FILTER (
                        is_counted AND (before IS NULL OR requested_at >= before + life OR marked_at > before)
                    ) AS misses
                FROM spaced ASOF LEFT JOIN (
                    SELECT rule, unnest(markers) AS marked_at FROM stale_rule
                ) AS marker ON spaced.rule = marker.rule AND requested_at >= marked_at
                GROUP BY spaced.rule, restart, vary, pair
            ), grouped AS (
                SELECT rule, restart, vary, pair, any_value(mean_ms) AS mean_ms,
                    any_value(weight) AS weight, count(*) FILTER (is_counted) AS requests,
                    count(*) FILTER (is_counted AND {is_hit}) AS hits,
                    count(*) FILTER (is_counted AND {is_miss} AND kind = 'known') AS own_misses,
                    count(*) FILTER (is_counted AND {is_merged_miss} AND kind = 'open') AS open_misses,
                    count(*) FILTER (is_counted AND {is_merged_miss} AND kind = 'known') AS known_misses,
                    bool_or(kind = 'open') AS has_open
                FROM {table} WHERE is_cached AND kind <> 'exact'
                GROUP BY rule, restart, vary, pair
            )
            SELECT rule, restart, vary, pair, mean_ms, weight, hits, has_open, requests - coalesce(
                    certain.misses,
                    CASE WHEN has_open THEN greatest(own_misses, open_misses) ELSE known_misses END
                ) AS high
            FROM grouped
            LEFT JOIN certain USING (rule, restart, vary, pair)
            """
        )
    # The share of a group's open misses that are hits at the upper bound.
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE chance_of_{table} AS
        SELECT n, least((high - hits) / count(*) OVER (PARTITION BY rule, restart, vary, pair), 1) AS chance
        FROM {table} JOIN bounded_group USING (rule, restart, vary, pair)
        WHERE has_open AND high > hits AND is_cached AND is_counted AND kind = 'open' AND {is_miss}
        """
    )
    rows = connection.execute(
        """
        SELECT rule, sum((high - hits) * weight)::BIGINT, sum((high - hits) * mean_ms * weight)::BIGINT
        FROM bounded_group WHERE has_open GROUP BY rule
        """
    ).fetchall()
    known_groups, position = connection.execute(
        "SELECT count(*), median(hits / high) FROM bounded_group WHERE NOT has_open AND high > 0"
    ).fetchall()[0]
    above = {rule: (hits, saved) for rule, hits, saved in rows}
    return above, position if known_groups >= _MIN_GROUPS else None


_STALE: Final = make_schema(rule=pa.int64(), life=pa.int64(), markers=pa.list_(pa.int64()))


def find_risk(
    connection: DuckDBPyConnection, table: str, *, warehouse: WarehouseTables
) -> dict[int, tuple[int, int]]:
    """Return (low, high) counts of possibly stale hits in ``table``, by the index of their rule.

    A hit counts as low if its result was there before the change, and as high if its execution had started.
    The table ``at_risk`` has the counts by rule and pair.
    """
    changing = connection.execute(
        f"""
        SELECT statement.text, table_list, statement, table_list.text
        FROM (SELECT DISTINCT table_list, statement FROM {table} AS outcome WHERE {_IS_CHANGE})
        JOIN statement USING (statement) JOIN table_list USING (table_list)
        """
    ).fetchall()
    connection.execute(_NO_RISK)
    if not changing:
        return {}
    read = [
        (text, number, statement, read_tables(tables, database=warehouse.database))
        for text, number, statement, tables in changing
    ]
    views = learn_views(((text, tables) for text, _, _, tables in read), warehouse)
    changed = []
    for text, number, statement, tables in read:
        names = find_changed_tables(text, tables, database=warehouse.database)
        # To write to a view changes its tables.
        names = names if defines(text) else views.reach(names)
        changed += [{"statement": statement, "table_list": number, "name": name} for name in names]
    index = NameIndex({row["name"] for row in changed})
    reading = [
        {"table_list": number, "name": name}
        for number, text in connection.execute("SELECT table_list, text FROM table_list").fetchall()
        for name in index.find_any(views.reach(read_tables(text, database=warehouse.database)))
    ]
    with registered(
        connection,
        changed_table=pa.Table.from_pylist(changed, _CHANGED),
        read_table=pa.Table.from_pylist(reading, _READ),
    ):
        # Few entries are served after a change since they started: only their hits are compared one by one.
        connection.execute(
            f"""
            INSERT INTO at_risk
            WITH change AS (
                SELECT DISTINCT name, requested_at + work_ms AS changed_at
                FROM {table} AS outcome JOIN changed_table USING (statement, table_list)
                WHERE {_IS_CHANGE}
            ), served AS (
                SELECT entry, table_list, any_value(started) AS started, max(requested_at) AS last_at
                FROM {table} WHERE is_counted AND {HIT.of("status")} GROUP BY entry, table_list
            ), doubtful AS (
                SELECT DISTINCT entry
                FROM (FROM served JOIN read_table USING (table_list)) AS served ASOF JOIN change
                    ON served.name = change.name AND last_at >= changed_at
                WHERE changed_at > started
            ), hit AS (
                SELECT n, rule, pair, weight, requested_at, started, born, name
                FROM {table} SEMI JOIN doubtful USING (entry) JOIN read_table USING (table_list)
                WHERE is_counted AND {HIT.of("status")}
            ), risk AS (
                SELECT n, any_value(rule) AS rule, any_value(pair) AS pair, any_value(weight) AS weight,
                    bool_or(changed_at > born) AS is_low, bool_or(changed_at > started) AS is_high
                FROM hit ASOF JOIN change ON hit.name = change.name AND hit.requested_at >= change.changed_at
                GROUP BY n
            )
            SELECT rule, pair, weight, count(*) FILTER (is_low) AS low, count(*) FILTER (is_high) AS high
            FROM risk GROUP BY ALL
            """
        )
    rows = connection.execute(
        "SELECT rule, sum(low * weight), sum(high * weight) FROM at_risk GROUP BY rule"
    ).fetchall()
    return {rule: (round(low), round(high)) for rule, low, high in rows}


_NO_RISK: Final = """
    CREATE OR REPLACE TABLE at_risk (rule BIGINT, pair BIGINT, weight DOUBLE, low BIGINT, high BIGINT)
"""

_IS_CHANGE: Final = f"outcome.is_change AND NOT outcome.is_failing AND {REFUSED.not_of('outcome.status')}"
_CHANGED: Final = make_schema(statement=pa.int64(), table_list=pa.int64(), name=pa.string())
_READ: Final = make_schema(table_list=pa.int64(), name=pa.string())
_EPOCH: Final = date(1970, 1, 1)
#: The scopes of `execution_sql`: hidden literals all differ, or are all equal.
APART, MERGED = "apart", "merged"
#: The table of executions of an outcome that other outcomes are compared with.
KEPT: Final = "kept_execution"


def execution_sql(table: str, *, is_exact: bool) -> str:
    """Return SQL for the executions of ``table``, the outcomes of a call of `play`.

    Columns: ``scope``, ``n``, ``host``, ``day``, ``starts``, ``took``. If the log hides literals, each
    execution is there for each scope that has it.
    """
    scopes = [APART] if is_exact else [APART, MERGED]
    merged = f"{EXECUTED.of('merged_status')} OR merged_revalidation"
    return f"""
        SELECT scope, n, {NUMBER_OF["serverHostname"]} AS host, day, requested_at AS starts, took_ms AS took
        FROM (
            SELECT n, {EXECUTED.of("status")} OR is_revalidation AS apart,
                if(kind = 'open', coalesce({merged}, apart), apart) AS merged
            FROM {table} WHERE apart OR merged
        ) JOIN request USING (n), (SELECT unnest({scopes}) AS scope)
        WHERE took_ms IS NOT NULL AND if(scope = '{APART}', apart, merged)
        UNION ALL
        SELECT scope, NULL, host, day, starts, took FROM outside_execution, (SELECT unnest({scopes}) AS scope)
    """


def _find_number(host: str) -> str:
    """Return SQL for the number of a host among the loaded requests; null if none has it."""
    number = NUMBER_OF["serverHostname"]
    return f"(SELECT {number} FROM text_of_{number} WHERE text = {quote_text(host)})"


def fill_job(
    sql: str,
    job: Job,
    pricing: Pricing | None = None,
    *,
    host_of: Callable[[str], str] = _find_number,
) -> str:
    """Return SQL of savings for the days of a job, and its prices or others."""
    first, pricing = job.first_day, pricing or job.pricing
    return fill_savings(sql, first=first, before=first, last=job.last_day, pricing=pricing, host_of=host_of)


def bill_executions(
    connection: DuckDBPyConnection,
    executions: str,
    job: Job,
    *,
    pricing: Pricing | None = None,
    host_of: Callable[[str], str] = _find_number,
) -> dict[str, Bill]:
    """Return the bill of each scope.

    Args:
        executions: SQL with the columns of `execution_sql`, except ``n``.
        pricing: prices in place of the prices of the job.
        host_of: as of `fill_savings`.
    """
    pricing = pricing or job.pricing
    sql = fill_job(_BILLED.format(executions=executions), job, pricing, host_of=host_of)
    awake: dict[str, dict[tuple[str | None, date], int]] = {}
    busy: dict[str, dict[tuple[str | None, date], int]] = {}
    for scope, host, number, awake_ms, busy_ms in connection.execute(sql).fetchall():
        key = host, _EPOCH + timedelta(number)
        awake.setdefault(scope, {})[key], busy.setdefault(scope, {})[key] = awake_ms, busy_ms
    days = days_between(job.first_day, job.last_day)
    return {scope: bill_days(days, pricing, awake=awake[scope], busy=busy[scope]) for scope in awake}


def bill_outcome(connection: DuckDBPyConnection, table: str, job: Job, *, is_exact: bool) -> Sequence[Bill]:
    """Return one bill, or two if the log hides literals, of a table of outcomes."""
    bills = bill_executions(connection, execution_sql(table, is_exact=is_exact), job)
    nothing = bill_days(days_between(job.first_day, job.last_day), job.pricing, awake={}, busy={})
    return [bills.get(scope, nothing) for scope in ([APART] if is_exact else [APART, MERGED])]


def compare_bills(total: Sequence[Bill], against: Sequence[Bill], pricing: Pricing) -> ReplayBilled:
    """Return what all possible bills of a ruleset come to, beside the bills of the current ruleset.

    The gain has the difference of the lowest and of the highest values.
    """
    sides = (total, against)
    ms = [_find_ends(bill.ms for bill in bills) for bills in sides]
    amounts = [_find_ends(bill.amount(bill.billed) for bill in bills) for bills in sides]

    def render(ms: Iterable[int], amounts: Iterable[int]) -> Billed:
        low, high = sorted(ms)
        money = [pricing.money(amount) for amount in sorted(amounts)]
        return Billed(
            billed_ms=BilledRange(low=low, high=high),
            money=MoneyRange(currency=pricing.currency or "", low=money[0], high=money[1]) if money else None,
        )

    return ReplayBilled(
        total=render(ms[0], amounts[0]),
        against=render(ms[1], amounts[1]),
        gain=render(map(sub, *ms), map(sub, *amounts)),
    )


def _find_ends(values: Iterable[int | None]) -> list[int]:
    """Return the least and the most; nothing if there are none."""
    found = sorted(value for value in values if value is not None)
    return [found[0], found[-1]] if found else []


#: Executions on one host within ``$bucket`` milliseconds belong to one session, as in
#: `analytics.reports.savings_sql`.
_BILLED: Final = f"""
    WITH execution AS ({{executions}}),
    bucket AS MATERIALIZED (
        SELECT scope, host, day, min(starts) AS starts, max(reach) AS reach, sum(took) AS busy
        FROM (
            SELECT scope, host, day, starts, took, starts // $bucket AS bucket,
                starts + took + $suspend AS reach
            FROM execution
        ) GROUP BY scope, host, day, bucket
    ),
    joined AS (
    {join_overlaps(keys="scope, host", table="bucket")}
    ),
    session AS (
        SELECT scope, $priced AS priced, starts, greatest(reach, starts + $minimum) AS until FROM joined
    ),
    awake AS (
    {split_by(DAY_MS, keys="scope, priced", table="session")}
    )
    SELECT scope, priced, number::INTEGER, sum(awake)::BIGINT, sum(busy)::BIGINT FROM (
        SELECT scope, priced, number, awake, 0 AS busy FROM awake
        UNION ALL SELECT scope, $priced, day - DATE '1970-01-01', 0, busy FROM bucket
    ) GROUP BY ALL
"""
STATUS_COUNTS: Final = {
    "hits": HIT,
    "misses": STORED_MISS,
    "holds": WAITED,
    "bypassed": BYPASSED,
    "blocked": BLOCKED,
    "passed": PASSED,
    "errors": FAILED,
    "invalidation_errors": NOT_RECORDED,
}
MISS_REASONS: Final = ("no-cache-entry", "ttl-expired", "invalidation-marker")
_EXECUTES: Final = f"({MISS.of('status')} OR is_revalidation)"
#: What each count adds up, and over which rows.
_COUNTS: Final = {
    **{name: ("1", statuses.of("status")) for name, statuses in STATUS_COUNTS.items()},
    "stale_hits": ("1", "is_stale"),
    "revalidations": ("1", "is_revalidation"),
    **{name: ("1", f"reason = {number}") for number, name in enumerate(MISS_REASONS)},
    "hit_bytes": ("bytes", HIT.of("status")),
    "saved_ms": ("mean_ms", HIT.of("status")),
    "spent_ms": ("work_ms", _EXECUTES),
}


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of an outcome by rule id; None stands for no rule.

    ``high_hits`` and ``high_saved_ms`` are upper bounds. ``position`` is the likely one between the bounds.
    ``bills`` are two where the log hides literals (`bill_outcome`), and none for a sample: whether a
    warehouse is awake depends on all requests. Only a sample has ``margins``.
    """

    rules: Mapping[str | None, Counter[str]]
    position: float | None
    bills: Sequence[Bill]
    margins: Margins | None


def count_outcome(
    connection: DuckDBPyConnection, outcome: Outcome, job: Job, *, is_exact: bool, is_sampled: bool
) -> Counts:
    """Count an outcome. `margins_of` of a sample reads what it leaves."""
    ids: dict[int, str | None] = {index: rule.id for index, rule in enumerate(outcome.decisions.rules)}
    rules: dict[str | None, Counter[str]] = defaultdict(Counter)
    columns = ", ".join(
        f"coalesce(sum({what} * weight) FILTER ({rows}), 0)" for what, rows in _COUNTS.values()
    )
    for index, *values in connection.execute(
        f"SELECT rule, {columns} FROM {outcome.table} WHERE is_counted GROUP BY rule"
    ).fetchall():
        counts = dict(zip(_COUNTS, map(round, values), strict=True))
        # Each request has one status.
        requests = sum(counts[name] for name in STATUS_COUNTS)
        rules[ids.get(index)].update({"requests": requests, **counts})
    for index, (low, high) in find_risk(connection, outcome.table, warehouse=job.tables).items():
        rules[ids.get(index)].update({"risk_low": low, "risk_high": high})
    _count_firings(connection, outcome, rules)
    for counts in rules.values():
        counts.update({f"high_{name}": counts[name] for name in ("hits", "saved_ms")})
    above, position = find_bounds(connection, outcome.table, outcome.lifetimes)
    for index, (hits, saved_ms) in above.items():
        rules[ids.get(index)].update({"high_hits": hits, "high_saved_ms": saved_ms})
    if is_sampled:
        _measure_units(connection, outcome.table)
        return Counts(rules, position, [], margins_of(connection, (outcome, 1)))
    return Counts(rules, position, bill_outcome(connection, outcome.table, job, is_exact=is_exact), None)


def _measured(table: str) -> str:
    return f"unit_count_of_{table}"


def margins_of(connection: DuckDBPyConnection, *parts: tuple[Outcome, int]) -> Margins:
    """Return the margins of the counts of a sample's outcome, or of the difference of two (1 and -1)."""
    return find_margins(
        connection,
        [(_measured(outcome.table), sign) for outcome, sign in parts],
        {_measured(outcome.table): [rule.id for rule in outcome.decisions.rules] for outcome, _ in parts},
    )


def _measure_units(connection: DuckDBPyConnection, table: str) -> None:
    """Create the table `_measured`: what each unit that stands for others adds to the counts of each rule.

    It is for `find_margins`, after `find_bounds` and `find_risk`.
    """
    counts = {"requests": ("1", "true"), **_COUNTS}
    columns = ", ".join(
        f"coalesce(sum({what}) FILTER ({rows}), 0)::DOUBLE AS {quote_name(name)}"
        for name, (what, rows) in counts.items()
    )
    names = ", ".join(map(quote_name, counts))
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE {_measured(table)} AS
        WITH light AS (SELECT pair, unit FROM pair WHERE unit IN (SELECT unit FROM light_unit)),
        counted AS (
            SELECT rule, unit, {columns} FROM {table} JOIN light USING (pair) WHERE is_counted
            GROUP BY rule, unit
        ), above AS (
            SELECT rule, unit, high - hits AS hits, (high - hits) * mean_ms AS saved_ms
            FROM bounded_group JOIN light USING (pair) WHERE has_open
        ), part AS (
            SELECT rule, unit, name, y FROM counted UNPIVOT (y FOR name IN ({names}))
            UNION ALL SELECT rule, unit, 'high_hits', hits FROM counted
            UNION ALL SELECT rule, unit, 'high_saved_ms', saved_ms FROM counted
            UNION ALL SELECT rule, unit, 'high_hits', hits FROM above
            UNION ALL SELECT rule, unit, 'high_saved_ms', saved_ms FROM above
            UNION ALL SELECT rule, unit, 'risk_low', low FROM at_risk JOIN light USING (pair)
            UNION ALL SELECT rule, unit, 'risk_high', high FROM at_risk JOIN light USING (pair)
        )
        SELECT rule, unit, name, sum(y) AS y FROM part GROUP BY ALL
        HAVING sum(y) <> 0 OR name IN {(*RARE_COUNTS, *RARE_TIMES)}
        """
    )


def _count_firings(
    connection: DuckDBPyConnection, outcome: Outcome, rules: dict[str | None, Counter[str]]
) -> None:
    rows = connection.execute(
        f"""
        SELECT ruleset, shape, sum(weight)::BIGINT FROM {outcome.table} WHERE is_counted AND fires
        GROUP BY ruleset, shape
        """
    ).fetchall()
    for ruleset, shape, count in rows:
        for firing in outcome.decisions.of_shapes[ruleset, shape].fired:
            rules[firing.rule_id]["fired"] += count
            for target in firing.targets:
                rules[target]["markers"] += count
