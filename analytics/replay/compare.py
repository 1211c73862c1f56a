"""Compare a replay with the log, and two rulesets with each other. docs/replay.md defines every number."""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

from analytics.replay.bounds import widen
from analytics.replay.result import (
    Bounds,
    CalibratedRule,
    Calibration,
    CalibrationCause,
    EvidenceQuery,
    HourCost,
    LoggedReplayed,
    MovedRequests,
    PublishCost,
    ReplayGrade,
    ReplayLeak,
    ReplayLeaks,
)
from analytics.replay.sample import find_margins
from analytics.reports.sql import reads_tables_sql
from logs.definitions import (
    BYPASSED,
    FAILED,
    HIT,
    MEASURED_MISS,
    REQUEST,
    SHARED,
    SPARED,
    STORED_MISS,
    Statuses,
)
from logs.layout import DAY_MS, HOUR_MS, day_start_ms
from logs.quoting import quote_texts
from rules.dialects.text import names_no_schema_sql
from rules.dialects.words import word_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.play import Outcome
    from analytics.replay.sample import Margins
    from rules.tables.warehouse import WarehouseTables


_GOOD: Final = 0.995
_FAIR: Final = 0.98
#: A Gateway serves stale results if its log has more than this share of the replay's stale hits as HIT.
_SERVES_STALE: Final = 0.01
#: The cause of a difference between the replayed and the logged status: the first that applies.
_WHY: Final = f"""
    CASE WHEN logged_rule IS DISTINCT FROM replayed_rule THEN 'other-rule'
    WHEN {FAILED.of("logged")} THEN 'not-executed'
    WHEN is_stale THEN if($serves_stale, 'stale-result', 'gateway-never-stale')
    WHEN {BYPASSED.of("logged")} OR {BYPASSED.of("status")} THEN 'gateway-declines'
    WHEN kind = 'open' THEN 'literals-hidden'
    WHEN is_cached AND reason = 0 AND {SPARED.of("logged")} THEN 'cached-before'
    WHEN is_later THEN 'differed-before'
    WHEN n IN (FROM simultaneous) THEN 'same-millisecond'
    WHEN is_cached THEN 'other-cache-state'
    ELSE 'unexplained' END
"""


def calibrate(connection: DuckDBPyConnection, outcome: Outcome) -> Calibration:
    """Compare the counted rows with the log."""
    ids = [rule.id for rule in outcome.decisions.rules]
    connection.execute(
        f"""
        CREATE OR REPLACE VIEW compared AS
        SELECT outcome.*, logged_rule,
            list_extract({quote_texts(ids)}::VARCHAR[], outcome.rule + 1) AS replayed_rule
        FROM {outcome.table} AS outcome JOIN request USING (n) WHERE outcome.is_counted
        """
    )
    # Cache requests whose status differs. The first difference of a result may cause the later ones.
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE differing AS
        SELECT n, rule, restart, vary, identity, requested_at,
            n > min(n) OVER (PARTITION BY rule, restart, vary, identity) AS is_later
        FROM {outcome.table} WHERE is_cached AND logged <> status
        """
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE simultaneous AS
        SELECT differing.n FROM differing JOIN {outcome.table} AS other
            USING (rule, restart, vary, identity, requested_at)
        WHERE other.is_cached AND other.n <> differing.n
        """
    )
    causes = connection.execute(
        f"""
        SELECT logged, status, sum(weight)::BIGINT AS count, {_WHY} AS why
        FROM compared LEFT JOIN differing USING (n)
        WHERE logged <> status
        GROUP BY logged, status, why ORDER BY count DESC, logged, status, why
        """,
        {"serves_stale": _serves_stale(connection, outcome)},
    ).fetchall()
    logged, replayed = Counter[tuple[str | None, str]](), Counter[tuple[str | None, str]]()
    rows = equal = 0
    for logged_rule, replayed_rule, logged_status, status, count in connection.execute(
        "SELECT logged_rule, replayed_rule, logged, status, sum(weight)::BIGINT FROM compared GROUP BY ALL"
    ).fetchall():
        rows += count
        equal += count if logged_status == status else 0
        logged[logged_rule, logged_status] += count
        replayed[replayed_rule, status] += count
    rule_ids = {rule_id for rule_id, _ in (*logged, *replayed) if rule_id is not None}
    order = {rule_id: index for index, rule_id in enumerate(ids)}
    share = equal / rows if rows else None
    grade: ReplayGrade = "poor"
    if share is not None and share >= _FAIR:
        grade = "good" if share >= _GOOD else "fair"

    def count_statuses(rule_id: str, statuses: Statuses) -> LoggedReplayed:
        return LoggedReplayed(
            logged=sum(logged[rule_id, status] for status in statuses),
            replayed=sum(replayed[rule_id, status] for status in statuses),
        )

    def count_requests(side: Counter[tuple[str | None, str]]) -> int:
        return sum(count for (_, status), count in side.items() if status in REQUEST)

    return Calibration(
        rows=rows,
        equal=equal,
        share=share,
        grade=grade,
        rules=[
            CalibratedRule(
                rule_id=rule_id,
                hits=count_statuses(rule_id, HIT),
                misses=count_statuses(rule_id, STORED_MISS),
            )
            for rule_id in sorted(rule_ids, key=lambda rule_id: (order.get(rule_id, len(order)), rule_id))
        ],
        causes=[
            CalibrationCause(logged=logged_status, replayed=status, count=count, why=why)
            for logged_status, status, count, why in causes
        ],
        requests=LoggedReplayed(logged=count_requests(logged), replayed=count_requests(replayed)),
    )


def _serves_stale(connection: DuckDBPyConnection, outcome: Outcome) -> bool:
    """Return True if the log has HIT for some requests that the replay serves with a stale result."""
    share = connection.execute(
        f"""
        SELECT coalesce(sum(weight) FILTER ({HIT.of("logged")}), 0) / nullif(sum(weight), 0)
        FROM {outcome.table} WHERE is_counted AND is_stale AND {SHARED.of("logged")}
        """
    ).fetchall()[0][0]
    return share is not None and share > _SERVES_STALE


def find_moved(
    connection: DuckDBPyConnection, before: Outcome, after: Outcome, *, position: float | None
) -> list[MovedRequests]:
    """Count the counted requests whose status differs between an outcome and one that was `play`ed like it.

    A miss with hidden literals is in part a hit (``chance_of_…``), so that the rows agree with the hits.

    Args:
        position: where the truth lies between the bounds.
    """
    rows = connection.execute(
        f"""
        WITH request_of_both AS (
            SELECT n, place, new.weight, old.status AS was, new.status AS becomes,
                coalesce(old_chance.chance, 0) AS a, coalesce(new_chance.chance, 0) AS b
            FROM {before.table} AS old JOIN {after.played} AS new USING (n) JOIN request USING (n)
            LEFT JOIN chance_of_{before.table} AS old_chance USING (n)
            LEFT JOIN chance_of_{after.table} AS new_chance USING (n)
            WHERE new.is_counted
        ), part AS (
            SELECT n, place, was, becomes, weight AS least, weight * (1 - greatest(a, b)) AS most
            FROM request_of_both
            UNION ALL
            SELECT n, NULL, was, '{HIT[0]}', 0, weight * (b - a) FROM request_of_both WHERE b > a
            UNION ALL
            SELECT n, NULL, '{HIT[0]}', becomes, 0, weight * (a - b) FROM request_of_both WHERE a > b
        )
        SELECT was, becomes, sum(least)::BIGINT AS count, sum(most)::DOUBLE,
            list_slice(list(n ORDER BY n) FILTER (place IS NOT NULL), 1, 3)
        FROM part WHERE was <> becomes
        GROUP BY was, becomes HAVING greatest(count, sum(most)) >= 0.5 ORDER BY count DESC, was, becomes
        """
    ).fetchall()
    ids = _find_log_ids(connection, [number for *_, examples in rows for number in examples or ()])
    return [
        MovedRequests(
            from_=old,
            to=new,
            count=count,
            examples=[ids[number] for number in examples or ()],
            bounds=_bound(count, most, position),
        )
        for old, new, count, most, examples in rows
    ]


def _find_log_ids(connection: DuckDBPyConnection, numbers: Sequence[int]) -> dict[int, str]:
    """Return the ``logId`` of requests by ``n``. They are long texts, so ``request`` is without them."""
    return dict(
        connection.execute(
            """
            SELECT n, logId FROM request
            JOIN entry ON entry.timestamp = requested_at AND entry.place = request.place
            WHERE list_contains($numbers::BIGINT[], n)
            """,
            {"numbers": numbers},
        ).fetchall()
    )


def _bound(count: int, most: float, position: float | None) -> Bounds:
    """Return the bounds of a count at the lower and at the upper bound of the hits."""
    low, high = sorted((count, int(most + 0.5)))
    likely = None if position is None else int(count + position * (most - count) + 0.5)
    return Bounds(low=low, likely=likely, high=high)


_MAX_WORDS: Final = 10


def compare_leaks(
    connection: DuckDBPyConnection, current: Outcome, subject: Outcome, *, warehouse: WarehouseTables
) -> ReplayLeaks:
    """Return the leaks that the replayed ruleset ends, and those that it begins.

    ``subject`` was `play`ed like ``current``. Statements that were not played again leak as before.
    """
    differs = reads_tables_sql(warehouse.personal, warehouse)
    before = f"(FROM {current.table} SEMI JOIN {subject.played} USING (statement))"
    for outcome, outcomes in ((current, before), (subject, subject.played)):
        connection.execute(
            f"""
            CREATE OR REPLACE TABLE leak_of_{outcome.table} AS
            WITH worded AS (SELECT statement, {word_sql("text")} AS word FROM statement), personal AS (
                SELECT statement, table_list, word
                FROM (SELECT DISTINCT statement, table_list FROM {outcomes} WHERE is_cached)
                JOIN worded USING (statement)
                JOIN (SELECT table_list, text AS tables FROM table_list) AS table_list USING (table_list)
                WHERE word IS NOT NULL OR {differs}
            ), shared AS (
                SELECT rule, statement, any_value(word) AS word, list(DISTINCT user_name) AS users
                FROM {outcomes} AS outcome JOIN personal USING (statement, table_list)
                JOIN request USING (n)
                WHERE outcome.is_counted AND is_cached AND outcome.identity IS NOT NULL
                    AND {SHARED.of("outcome.status")} AND user_name IS NOT NULL
                GROUP BY rule, outcome.restart, vary, outcome.identity, statement
                HAVING count(DISTINCT user_name) > 1
            )
            SELECT rule, statement, any_value(word) AS word,
                len(list_distinct(flatten(list(users)))) AS users
            FROM shared GROUP BY rule, statement
            """
        )
    return ReplayLeaks(
        ended=_leaks_without(connection, current, subject), begun=_leaks_without(connection, subject, current)
    )


def shares_without_schema(connection: DuckDBPyConnection, outcome: Outcome) -> bool:
    """Return True if a rule shares results of a table that is named without a schema."""
    shared = [index for index, rule in enumerate(outcome.decisions.rules) if rule.is_shared]
    found = connection.execute(
        f"""
        SELECT 1 FROM table_list WHERE {names_no_schema_sql("text")} AND table_list IN (
            SELECT table_list FROM {outcome.table}
            WHERE is_counted AND is_cached AND list_contains($shared::BIGINT[], rule)
        ) LIMIT 1
        """,
        {"shared": shared},
    ).fetchone()
    return found is not None


def shares_between_sessions(connection: DuckDBPyConnection, outcome: Outcome) -> bool:
    """Return True if a rule serves results of other sessions, whose settings the log does not show."""
    shared = [
        index for index, rule in enumerate(outcome.decisions.rules) if "sessionId" not in (rule.vary_by or ())
    ]
    found = connection.execute(
        f"""
        SELECT 1 FROM {outcome.table}
        WHERE is_counted AND {SPARED.of("status")} AND list_contains($shared::BIGINT[], rule) LIMIT 1
        """,
        {"shared": shared},
    ).fetchone()
    return found is not None


def _leaks_without(connection: DuckDBPyConnection, of: Outcome, without: Outcome) -> list[ReplayLeak]:
    """Return the leaks of statements that leak under one outcome and not under the other."""
    rows = connection.execute(
        f"""
        SELECT rule, count(*), max(users),
            coalesce(list_sort(list(DISTINCT word) FILTER (word IS NOT NULL))[:{_MAX_WORDS}], [])
        FROM leak_of_{of.table}
        WHERE statement NOT IN (SELECT statement FROM leak_of_{without.table})
        GROUP BY rule ORDER BY rule
        """
    ).fetchall()
    rules = of.decisions.rules
    return [
        ReplayLeak(
            rule_id=rules[index].id,
            rule_name=rules[index].name,
            statements=statements,
            users=users,
            words=tuple(words),
        )
        for index, statements, users, words in rows
    ]


_HOURS: Final = DAY_MS // HOUR_MS


def estimate_publish_cost(
    connection: DuckDBPyConnection,
    table: str,
    *,
    first_day: date,
    last_day: date,
    left_out: int,
    hour: int,
    is_sampled: bool = False,
) -> PublishCost:
    """Return the mean extra misses and their milliseconds by hour of the day (UTC).

    Args:
        table: the table of outcomes.
        left_out: how many of the days have no requests in it.
        hour: the hour that the result has as ``now``. ``best`` has the least extra time, then misses.
        is_sampled: the log is a sample, so the costs have bounds.
    """
    start = day_start_ms(first_day) // HOUR_MS
    count = (last_day - first_day).days * _HOURS + _HOURS
    # For each entry, the hours that start after its execution began and not after its last hit.
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE entry_span AS
        SELECT first, last, {"pair" if is_sampled else "NULL::BIGINT AS pair"}, weight, count(*) AS entries,
            sum(mean_ms) AS mean_ms
        FROM (
            SELECT greatest(any_value(started) // {HOUR_MS} + 1 - {start}, 0) AS first,
                least(max(requested_at) // {HOUR_MS} - {start}, {count - 1}) AS last,
                arg_max(mean_ms, requested_at) AS mean_ms, any_value(pair) AS pair,
                any_value(weight) AS weight
            FROM {table} WHERE entry IS NOT NULL GROUP BY entry
        ) GROUP BY ALL
        """
    )
    spans = "SELECT *, unnest(range(first, last + 1)) AS hour FROM entry_span"
    rows = connection.execute(
        f"""
        SELECT hour % {_HOURS}, sum(entries * weight)::BIGINT, sum(mean_ms * weight)::BIGINT FROM ({spans})
        GROUP BY ALL
        """
    ).fetchall()
    extra = {hour: costs for hour, *costs in rows}
    days = max(count // _HOURS - left_out, 1)
    margins = _bound_cost(connection, spans) if is_sampled else None
    by_hour = []
    for hour_of_day in range(_HOURS):
        misses, ms = (round_half_up(cost, days) for cost in extra.get(hour_of_day, (0, 0)))
        sampled = None
        if margins is not None:
            sampled = {
                name: widen(value, value, margins.of(str(hour_of_day), name) / days, least=0)
                for name, value in (("extraMisses", misses), ("extraMs", ms))
            }
        by_hour.append(HourCost(hour=hour_of_day, extra_misses=misses, extra_ms=ms, sampled=sampled))
    best = min(by_hour, key=lambda row: (row.extra_ms, row.extra_misses, row.hour))
    return PublishCost(by_hour=by_hour, best=best, now=by_hour[hour])


def _bound_cost(connection: DuckDBPyConnection, spans: str) -> Margins:
    """Return the margins of the costs of a sample, by hour of the day."""
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE unit_cost AS
        WITH light AS (
            SELECT hour % {_HOURS} AS rule, unit, sum(entries) AS misses, sum(mean_ms) AS ms
            FROM ({spans}) JOIN pair USING (pair) WHERE unit IN (SELECT unit FROM light_unit) GROUP BY ALL
        )
        SELECT rule, unit, 'extraMisses' AS name, misses AS y FROM light
        UNION ALL SELECT rule, unit, 'extraMs', ms FROM light
        """
    )
    return find_margins(connection, [("unit_cost", 1)], {"unit_cost": [str(hour) for hour in range(_HOURS)]})


def round_half_up(numerator: int, denominator: int) -> int:
    """Return a quotient rounded to the nearest integer."""
    return (2 * numerator + denominator) // (2 * denominator)


def replay_evidence(first_day: date, last_day: date) -> list[EvidenceQuery]:
    """Return SQL over ``proxy_logs`` that reads the logged statuses and the mean times of statements."""
    days = f"day BETWEEN '{first_day}' AND '{last_day}'"
    return [
        EvidenceQuery(
            name="logged-statuses",
            sql="SELECT matchedRule, cacheStatus, count(*) AS entries FROM proxy_logs"
            f" WHERE {days} GROUP BY ALL ORDER BY ALL",
        ),
        EvidenceQuery(
            name="statement-means",
            sql="SELECT standardizedSql, floor(avg(warehouseExecutionTimeMs)) AS meanMs FROM proxy_logs"
            f" WHERE {MEASURED_MISS} AND {days} GROUP BY ALL ORDER BY ALL",
        ),
    ]
