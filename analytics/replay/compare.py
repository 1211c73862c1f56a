"""Replay a job: play its rulesets, and compare the replayed one with the log and with the current one.

docs/replay.md defines every number.
"""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from analytics.replay.count import (
    KEPT,
    MISS_REASONS,
    compare_bills,
    count_outcome,
    execution_sql,
    margins_of,
)
from analytics.replay.load import Ruleset, load_requests
from analytics.replay.play import play
from analytics.replay.result import (
    Bounds,
    CalibratedRule,
    Calibration,
    CalibrationCause,
    Caveat,
    EvidenceQuery,
    HourCost,
    LearnedGateway,
    LoggedReplayed,
    MovedRequests,
    PublishCost,
    ReplayCounts,
    ReplayGrade,
    ReplayInput,
    ReplayLeak,
    ReplayLeaks,
    ReplayResult,
    ReplayRows,
    ReplayRuleCounts,
    ReplayRuleset,
    ReplayWindow,
    RiskCount,
    SampledChange,
    SampledRange,
    SampledTotals,
)
from analytics.replay.rules import find_columns, find_other_gateways, learn_gateway
from analytics.replay.sample import find_margins
from analytics.reports.savings_sql import days_between
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
    from collections.abc import Callable, Collection, Sequence
    from datetime import date

    from duckdb import DuckDBPyConnection

    from analytics.replay.count import Counts
    from analytics.replay.load import Gateway, Job
    from analytics.replay.play import Outcome
    from analytics.replay.sample import Margins
    from analytics.reports.savings_sql import Bill
    from rules.language import Rule
    from rules.tables.warehouse import WarehouseTables


@dataclass(frozen=True, slots=True)
class Played:
    """The outcome of rulesets, and the counts under each possible setting of the Gateway."""

    #: The last of the rulesets.
    rules: Sequence[Rule]
    outcome: Outcome
    #: The first are the counts of ``outcome``.
    runs: Sequence[Counts]

    @property
    def bills(self) -> list[Bill]:
        """All bills that the settings of the Gateway and hidden literals allow."""
        return [bill for counts in self.runs for bill in counts.bills]


def replay(
    connection: DuckDBPyConnection, job: Job, *, report: Callable[[float], None] = lambda _: None
) -> ReplayResult:
    """Replay a job and return its result.

    Args:
        connection: a DuckDB of the caller alone; temporary tables are left in it.
        report: called with the progress, 0 to 1. It may raise an exception to end the replay.
    """
    replayer = Replayer(connection, job, report=report)
    replayer.play_current()
    return replayer.compare(job.subject)


class Replayer:
    """Loads the log of a job once, learns the settings of the Gateway from it, and replays rulesets over it.

    Attributes:
        input: the loaded requests and what was learned of the Gateway.
        calibration: the rules that were in force compared with the log, from `play_current` on.
        current: the outcome of the current rules, from `play_current` on.
    """

    calibration: Calibration
    current: Played

    def __init__(
        self,
        connection: DuckDBPyConnection,
        job: Job,
        *,
        columns: Collection[str] = (),
        report: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Load the columns that the rulesets of the job read, and ``columns``. ``report`` as in `replay`."""
        self.connection, self.job, self._report = connection, job, report
        rulesets = [job.subject, job.current, *(ruleset.rules for ruleset in job.in_force)]
        tested = set().union(*map(find_columns, rulesets))
        self._loaded = load_requests(
            connection,
            job.files,
            first_day=job.first_day,
            columns={*columns, *tested},
            changes=job.changes,
            sampling=job.sampling
            and replace(
                job.sampling, firing=[rule for rules in rulesets for rule in rules], tables=job.tables
            ),
            is_assessment=job.is_assessment,
            tests_text="standardizedSql" in tested,
        )
        report(0.3)
        self.gateway = learn_gateway(connection, job, restarts=self._loaded.restarts)
        days = days_between(job.first_day, job.last_day)
        empty, missing = self._loaded.empty_columns, {*days} - {file.day for file in job.files}
        self.input = ReplayInput(
            window=ReplayWindow(
                from_=job.first_day,
                to=job.last_day,
                warmup_days=job.warmup_days,
                days_left_out=sorted({*empty, *missing}),
                empty_columns={day.isoformat(): names for day, names in empty.items()},
                absent_columns=self._loaded.absent_columns or None,
            ),
            rows=ReplayRows.of(self._loaded),
            gateway=LearnedGateway.of(self.gateway),
            sample=self._loaded.sample,
        )

    def play_current(self, *, keep: bool = False) -> None:
        """Replay the rules that were in force, then the current ones, in the table ``current``.

        With ``keep``, `KEPT` has the executions of the current rules (`execution_sql`), if `is_whole`.
        """
        in_force = self.current = self._play("current", self.job.rulesets_in_force, keep=keep)
        self.calibration = calibrate(self.connection, in_force.outcome)
        self._report(0.5)
        # Equal rulesets are replayed once.
        if not self.job.has_one_ruleset:
            self.current = self._play("current", [Ruleset(0, self.job.current)], keep=keep)
        self._is_gateway_unknown = len(in_force.runs) > 1 or len(self.current.runs) > 1
        self._report(0.7)

    def compare(self, rules: tuple[Rule, ...]) -> ReplayResult:
        """Replay rules, and return the result beside the current ones."""
        job, current = self.job, self.current
        subject = current if rules == job.current else self._play("subject", [Ruleset(0, rules)])
        self._report(0.9)
        outcomes = current.outcome, subject.outcome
        # One for both rulesets: two would make a difference for rules that are equal in both.
        position = current.runs[0].position
        if position is None:
            position = subject.runs[0].position
        counts = render_counts(subject, position)
        left_out = self.input.window.days_left_out or ()
        return ReplayResult(
            **msgspec.structs.asdict(self.input),
            calibration=self.calibration,
            total=counts.total,
            rules=counts.rules,
            against=render_counts(current, position),
            billed=compare_bills(subject.bills, current.bills, job.pricing) if self.is_whole else None,
            moved=find_moved(self.connection, *(outcome.table for outcome in outcomes), position=position),
            leaks=compare_leaks(self.connection, *outcomes, warehouse=job.tables),
            publish_cost=estimate_publish_cost(
                self.connection,
                subject.outcome.table,
                first_day=job.first_day,
                last_day=job.last_day,
                left_out=sum(day >= job.first_day for day in left_out),
                hour=job.hour,
                is_sampled=not self.is_whole,
            ),
            caveats=self.find_caveats(subject),
            evidence=replay_evidence(job.first_day, job.last_day),
            names={
                rule.id: rule.name for outcome in outcomes for rule in outcome.decisions.rules if rule.name
            },
            sampled_changes=None if self.is_whole else self._bound_changes(current, subject),
        )

    def _bound_changes(self, current: Played, subject: Played) -> SampledTotals:
        """Return the bounds of how counts change, from what each unit of the sample changes."""
        margins = margins_of(self.connection, (subject.outcome, 1), (current.outcome, -1))
        after, before = (
            {counts.rule_id: _list_bounds(counts) for counts in render_counts(one, None).rules}
            for one in (subject, current)
        )
        none = [one._replace(low=0, high=0) for one in after[None]]

        def is_same(rule_id: str | None) -> bool:
            return after.get(rule_id, none) == before.get(rule_id, none)

        changes = {
            rule_id: [
                # A rule that counts the same does the same, whatever the hidden literals are.
                new._replace(low=0, high=0)
                if new == old
                else new._replace(low=new.low - old.high, high=new.high - old.low)
                for new, old in zip(after.get(rule_id, none), before.get(rule_id, none), strict=True)
            ]
            for rule_id in {**after, **before}
        }
        total = [
            parts[0]._replace(low=sum(one.low for one in parts), high=sum(one.high for one in parts))
            for parts in zip(*changes.values(), strict=True)
        ]
        return SampledTotals(
            total=_widen_all(
                total,
                _no_margin if all(map(is_same, changes)) else lambda name: margins.total.get(name, 0.0),
            ),
            rules=[
                SampledChange(
                    rule_id=rule_id,
                    changes=_widen_all(
                        bounds, _no_margin if is_same(rule_id) else partial(margins.of, rule_id)
                    ),
                )
                for rule_id, bounds in changes.items()
            ],
        )

    @property
    def is_whole(self) -> bool:
        """True if all entries are replayed, and not a sample."""
        return self._loaded.sample is None

    def find_caveats(self, subject: Played | None = None) -> list[str]:
        """Return the codes of what limits the result, for the current rules alone or for a subject too."""
        job, empty, grade = self.job, self._loaded.empty_columns, self.calibration.grade
        is_warmed_up = any(file.day < job.first_day and file.day not in empty for file in job.files)
        caveats = {
            Caveat.WRITES_PAST_GATEWAY: True,
            Caveat.LITERALS_HIDDEN: self._loaded.open > 0,
            Caveat.GATEWAY_UNKNOWN: self._is_gateway_unknown or (subject and len(subject.runs) > 1),
            Caveat.KEYS_PER_USER: self.gateway.keys_per_user is True,
            Caveat.COMMENTS_VARY: self._loaded.comments_vary,
            Caveat.DAYS_LEFT_OUT: bool(self.input.window.days_left_out),
            Caveat.COLUMNS_ABSENT: bool(self._loaded.absent_columns),
            Caveat.COLD_START: not is_warmed_up,
            Caveat.CALIBRATION_FAIR: grade == "fair",
            Caveat.CALIBRATION_POOR: grade == "poor",
            Caveat.CACHE_DISABLED: not job.cache_enabled,
            Caveat.SAMPLED: not self.is_whole,
            Caveat.WITHOUT_SCHEMA: subject and shares_without_schema(self.connection, subject.outcome),
        }
        return [caveat.value for caveat, applies in caveats.items() if applies]

    def _play(self, table: str, rulesets: Sequence[Ruleset], *, keep: bool = False) -> Played:
        """Create ``table``, and return its outcome and counts."""
        is_exact = self._loaded.is_exact

        def count(name: str, gateway: Gateway) -> tuple[Outcome, Counts]:
            outcome = play(
                self.connection,
                rulesets,
                table=name,
                gateway=gateway,
                restarts=self._loaded.restarts,
                markers=self.job.markers,
            )
            counts = count_outcome(
                self.connection, outcome, self.job, is_exact=is_exact, is_sampled=not self.is_whole
            )
            return outcome, counts

        outcome, counts = count(table, self.gateway)
        if keep and self.is_whole:
            executions = execution_sql(table, is_exact=is_exact)
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {KEPT} AS {executions}")
        others = find_other_gateways(self.connection, self.gateway)
        runs = [counts, *(count("other_gateway", other)[1] for other in others)]
        return Played(rulesets[-1].rules, outcome, runs)


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
        CREATE OR REPLACE TEMP VIEW compared AS
        SELECT outcome.*, logged_rule,
            list_extract({quote_texts(ids)}::VARCHAR[], outcome.rule + 1) AS replayed_rule
        FROM {outcome.table} AS outcome JOIN request USING (n) WHERE outcome.is_counted
        """
    )
    # Cache requests whose status differs. The first difference of a result may cause the later ones.
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE differing AS
        SELECT n, rule, restart, vary, identity, requested_at,
            n > min(n) OVER (PARTITION BY rule, restart, vary, identity) AS is_later
        FROM {outcome.table} WHERE is_cached AND logged <> status
        """
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE simultaneous AS
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
    connection: DuckDBPyConnection, before: str, after: str, *, position: float | None
) -> list[MovedRequests]:
    """Count the counted requests whose status differs between two tables of outcomes.

    A miss with hidden literals is in part a hit (``chance_of_…``), so that the rows agree with the hits.

    Args:
        position: where the truth lies between the bounds.
    """
    rows = connection.execute(
        f"""
        WITH request_of_both AS (
            SELECT n, log_id, new.weight, old.status AS was, new.status AS becomes,
                coalesce(old_chance.chance, 0) AS a, coalesce(new_chance.chance, 0) AS b
            FROM {before} AS old JOIN {after} AS new USING (n) JOIN request USING (n)
            LEFT JOIN chance_of_{before} AS old_chance USING (n)
            LEFT JOIN chance_of_{after} AS new_chance USING (n)
            WHERE new.is_counted
        ), part AS (
            SELECT n, log_id, was, becomes, weight AS least, weight * (1 - greatest(a, b)) AS most
            FROM request_of_both
            UNION ALL
            SELECT n, NULL, was, '{HIT[0]}', 0, weight * (b - a) FROM request_of_both WHERE b > a
            UNION ALL
            SELECT n, NULL, '{HIT[0]}', becomes, 0, weight * (a - b) FROM request_of_both WHERE a > b
        )
        SELECT was, becomes, sum(least)::BIGINT AS count, sum(most)::DOUBLE,
            list_slice(list(log_id ORDER BY n) FILTER (log_id IS NOT NULL), 1, 3)
        FROM part WHERE was <> becomes
        GROUP BY was, becomes HAVING greatest(count, sum(most)) >= 0.5 ORDER BY count DESC, was, becomes
        """
    ).fetchall()
    return [
        MovedRequests(
            from_=old, to=new, count=count, examples=examples or [], bounds=_bound(count, most, position)
        )
        for old, new, count, most, examples in rows
    ]


def _bound(count: int, most: float, position: float | None) -> Bounds:
    """Return the bounds of a count at the lower and at the upper bound of the hits."""
    low, high = sorted((count, int(most + 0.5)))
    likely = None if position is None else int(count + position * (most - count) + 0.5)
    return Bounds(low=low, likely=likely, high=high)


_MAX_WORDS: Final = 10


def compare_leaks(
    connection: DuckDBPyConnection, current: Outcome, subject: Outcome, *, warehouse: WarehouseTables
) -> ReplayLeaks:
    """Return the leaks that the replayed ruleset ends, and those that it begins."""
    differs = reads_tables_sql(warehouse.personal, warehouse)
    for outcome in (current, subject):
        connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE leak_of_{outcome.table} AS
            WITH worded AS (SELECT statement, {word_sql("text")} AS word FROM statement), personal AS (
                SELECT statement, table_list, word
                FROM (SELECT DISTINCT statement, table_list FROM {outcome.table} WHERE is_cached)
                JOIN worded USING (statement)
                JOIN (SELECT table_list, text AS tables FROM table_list) AS table_list USING (table_list)
                WHERE word IS NOT NULL OR {differs}
            ), shared AS (
                SELECT rule, statement, any_value(word) AS word, list(DISTINCT user_name) AS users
                FROM {outcome.table} AS outcome JOIN personal USING (statement, table_list)
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
        CREATE OR REPLACE TEMP TABLE entry_span AS
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
                name: _widen(value, value, margins.of(str(hour_of_day), name) / days, least=0)
                for name, value in (("extraMisses", misses), ("extraMs", ms))
            }
        by_hour.append(HourCost(hour=hour_of_day, extra_misses=misses, extra_ms=ms, sampled=sampled))
    best = min(by_hour, key=lambda row: (row.extra_ms, row.extra_misses, row.hour))
    return PublishCost(by_hour=by_hour, best=best, now=by_hour[hour])


def _bound_cost(connection: DuckDBPyConnection, spans: str) -> Margins:
    """Return the margins of the costs of a sample, by hour of the day."""
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE unit_cost AS
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


def render_counts(played: Played, position: float | None) -> ReplayRuleset:
    """Return ``total`` and ``rules``: the rules of the ruleset in order, then requests without a rule."""
    runs = played.runs
    ids: list[str | None] = [rule.id for rule in played.rules]
    every: Sequence[str | None] = [*ids, *(key for key in runs[0].rules if key not in {*ids, None}), None]
    return ReplayRuleset(
        total=_render_counts(runs, every, position),
        rules=[
            ReplayRuleCounts(
                **msgspec.structs.asdict(_render_counts(runs, [rule_id], position)), rule_id=rule_id
            )
            for rule_id in every
        ],
    )


def _render_counts(
    runs: Sequence[Counts], rule_ids: Sequence[str | None], position: float | None
) -> ReplayCounts:
    counts: Counter[str] = Counter()
    for rule_id in rule_ids:
        counts.update(runs[0].rules.get(rule_id, {}))
    rendered = ReplayCounts(
        hits=_bound_counts(runs, rule_ids, "hits", position),
        saved_ms=_bound_counts(runs, rule_ids, "saved_ms", position),
        risk=RiskCount(low=counts["risk_low"], high=counts["risk_high"]),
        miss_reasons={reason: counts[reason] for reason in MISS_REASONS},
        **{name: counts[name] for name in _SIMPLE_COUNTS},
        sampled=None,
    )
    margins = [run.margins for run in runs if run.margins is not None]
    if not margins:
        return rendered
    # All rules together are given as several, one alone as itself.
    is_total = len(rule_ids) > 1

    def margin_of(name: str) -> float:
        return max(one.total.get(name, 0.0) if is_total else one.of(rule_ids[0], name) for one in margins)

    sampled = _widen_all(_list_bounds(rendered), margin_of, least=0)
    return msgspec.structs.replace(rendered, sampled=sampled)


class _Bounded(NamedTuple):
    """A count with its bounds where literals are hidden; ``high_name`` is the name of its upper bound."""

    name: str
    high_name: str
    low: int
    high: int


def _list_bounds(counts: ReplayCounts) -> list[_Bounded]:
    """Return the counts that a sample estimates."""
    return [
        _Bounded("hits", "high_hits", counts.hits.low, counts.hits.high),
        _Bounded("saved_ms", "high_saved_ms", counts.saved_ms.low, counts.saved_ms.high),
        _Bounded("risk", "risk_high", counts.risk.low, counts.risk.high),
        *(_Bounded(name, name, getattr(counts, name), getattr(counts, name)) for name in _SAMPLED_COUNTS),
    ]


def _widen_all(
    bounds: Sequence[_Bounded], margin_of: Callable[[str], float], *, least: float = -inf
) -> dict[str, SampledRange]:
    """Return the bounds of a sample by the name of the count in JSON."""
    return {
        _JSON_NAMES[one.name]: _widen(
            one.low, one.high, max(margin_of(one.name), margin_of(one.high_name)), least=least
        )
        for one in bounds
    }


def _no_margin(_: str) -> float:
    return 0.0


def _widen(low: int, high: int, margin: float, *, least: float = -inf) -> SampledRange:
    return SampledRange(low=floor(max(low - margin, least)), high=ceil(high + margin))


def _bound_counts(
    runs: Sequence[Counts], rule_ids: Sequence[str | None], name: str, position: float | None
) -> Bounds:
    low, high = (
        choose(sum(run.rules[rule_id][key] for rule_id in rule_ids if rule_id in run.rules) for run in runs)
        for choose, key in ((min, name), (max, f"high_{name}"))
    )
    likely = None if position is None else int(low + position * (high - low) + 0.5)
    return Bounds(low=low, likely=likely, high=high)


#: The counts without bounds.
_SIMPLE_COUNTS: Final = {*ReplayCounts.__struct_fields__} - {
    *("hits", "saved_ms", "risk", "miss_reasons", "sampled")
}
#: Those that a sample only estimates: what fires is in every sample.
_SAMPLED_COUNTS: Final = sorted(_SIMPLE_COUNTS - {"fired", "markers"})
_JSON_NAMES: Final = dict(
    zip(ReplayCounts.__struct_fields__, ReplayCounts.__struct_encode_fields__, strict=True)
)
