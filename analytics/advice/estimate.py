"""The requests of the log by statement and result, and an estimate of what a lifetime would save of them."""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from analytics.replay.load import little_memory, read_numbers
from analytics.replay.play import NEVER, Lifetime
from analytics.reports.sql import defines, find_changed_tables, learn_views, read_tables
from logs.definitions import FAILED, NOT_RECORDED, PASSED, REFUSED, Statuses
from rules.conditions import Request, matches, read_request
from rules.conditions.patterns import glob_matches
from rules.dialects.text import names_schema
from rules.dialects.words import find_time, find_word
from rules.tables.names import NameIndex, TableName
from rules.tables.warehouse import ANY_TABLES, WarehouseTables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.load import Gateway
    from analytics.replay.play import Outcome
    from rules.conditions.model import Condition
    from rules.tables.warehouse import Views

#: The columns that distinguish statements. Proposed rules read only these and the statement.
STATEMENT_COLUMNS: Final = ("tables", "isReadOnly", "isDataChange", "isDDL", "hasNonDeterministicFunctions")
NO_RULE: Final = -1


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement with its tables and flags. ``mean_ms`` is its mean time in the warehouse.

    ``database`` is the one of names without a database.
    """

    number: int
    text: str
    mean_ms: int
    request: Request
    tables_text: str | None
    database: str = ""

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of its tables as in the log."""
        names = self.request["tables"]
        return names if isinstance(names, frozenset) else frozenset()

    @cached_property
    def tables(self) -> frozenset[TableName]:
        """Its tables, however the log spells them."""
        return read_tables(self.tables_text, database=self.database)

    @cached_property
    def changed(self) -> frozenset[TableName]:
        """The tables that the statement names as changed if it changes data."""
        return find_changed_tables(self.text, self.tables, database=self.database)

    @cached_property
    def word(self) -> str | None:
        """The word on which its result depends by who asks or by the session."""
        return find_word(self.text)

    @cached_property
    def time_word(self) -> str | None:
        """The word on which its result depends by the time."""
        return find_time(self.text)

    @cached_property
    def names_no_schema(self) -> bool:
        """True if it names a table without a schema, which the session decides."""
        return not all(map(names_schema, self.names))

    def fits(self, condition: Condition) -> bool:
        """Return True if a condition, which reads only `STATEMENT_COLUMNS` and the statement, matches."""
        return matches(condition, self.request)


class ByTable:
    """An index of statements by the names of their tables."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._by_name: dict[str, list[Statement]] = {}
        for statement in statements:
            for name in statement.names:
                self._by_name.setdefault(name, []).append(statement)

    def find(self, pattern: str) -> list[Statement]:
        """Return the statements that ``{"tables": {"containsAny": [pattern]}}`` matches, by number."""
        names = (
            [name for name in self._by_name if glob_matches(pattern, name)] if "*" in pattern else [pattern]
        )
        statements = {statement for name in names for statement in self._by_name.get(name, ())}
        return sorted(statements, key=lambda statement: statement.number)


@dataclass(frozen=True, slots=True)
class Series:
    """The requests for one result that one rule decides, in order.

    Attributes:
        rule: the index of the rule, or `NO_RULE`.
        is_hidden: the log hides their literals. They are counted as one result, which gives an upper bound.
        times: epoch ms.
        works: the time in the warehouse, in ms.
        failing: 1 for requests that failed, else 0.
        weight: how many such series of the log it stands for.
    """

    statement: Statement
    rule: int
    is_hidden: bool
    times: memoryview[int]
    works: memoryview[int]
    failing: memoryview[int]
    weight: float = 1

    @property
    def answered(self) -> int:
        """How many of them did not fail."""
        return round(self.weight * (len(self.times) - sum(self.failing)))

    @property
    def spent_ms(self) -> int:
        """Their time in the warehouse."""
        return round(self.weight * sum(self.works))


@dataclass(frozen=True, slots=True)
class Write:
    """A statement that changed data or schema, and the times (epoch ms) at which its runs ended."""

    statement: Statement
    times: Sequence[int]


@dataclass(frozen=True, eq=False)
class Requests:
    """The requests of the log as the current ruleset decides them."""

    statements: Sequence[Statement]
    series: Sequence[Series]
    writes: Sequence[Write]
    counted_from: int
    warehouse: WarehouseTables = ANY_TABLES
    #: Times of the changes of each set of tables.
    _changes: dict[frozenset[TableName], list[int]] = field(default_factory=dict, init=False)
    #: Of each set of tables that statements read, the tables that change.
    _changed_of_lists: dict[frozenset[TableName], frozenset[TableName]] = field(
        default_factory=dict, init=False
    )

    @cached_property
    def views(self) -> Views:
        """The views of the configuration, and those that the log creates."""
        return learn_views(
            ((write.statement.text, write.statement.tables) for write in self.writes), self.warehouse
        )

    @cached_property
    def by_rule(self) -> Mapping[int, Sequence[Series]]:
        by_rule: dict[int, list[Series]] = {}
        for series in self.series:
            by_rule.setdefault(series.rule, []).append(series)
        return by_rule

    @cached_property
    def _changed(self) -> list[tuple[Write, frozenset[TableName]]]:
        """Each write with the tables that it changes. To write to a view changes its tables."""
        return [
            (write, changed if defines(write.statement.text) else self.views.reach(changed))
            for write, changed in ((write, write.statement.changed) for write in self.writes)
        ]

    @cached_property
    def _changes_by_table(self) -> dict[TableName, list[int]]:
        by_table: dict[TableName, list[int]] = {}
        for write, changed in self._changed:
            for table in changed:
                by_table.setdefault(table, []).extend(write.times)
        return {table: sorted(times) for table, times in by_table.items()}

    @cached_property
    def _changed_index(self) -> NameIndex:
        return NameIndex(self._changes_by_table)

    def changed_by(self, statements: Iterable[Statement]) -> frozenset[TableName]:
        """Return the changed tables that one of the statements reads, or may, also through views."""
        known = self._changed_of_lists
        lists = {statement.tables for statement in statements}
        for tables in lists - known.keys():
            known[tables] = self._changed_index.find_any(self.views.reach(tables))
        return frozenset[TableName]().union(*(known[tables] for tables in lists))

    def changes_of(self, statement: Statement) -> Sequence[int]:
        """Return the sorted times of changes of the tables that the statement reads."""
        tables = self.changed_by([statement])
        if tables not in self._changes:
            self._changes[tables] = sorted({at for table in tables for at in self._changes_by_table[table]})
        return self._changes[tables]

    def writes_to(self, tables: frozenset[TableName]) -> list[tuple[Write, frozenset[TableName]]]:
        """Return the writes that change any of the tables, each with those that it changes."""
        return [(write, changed & tables) for write, changed in self._changed if changed & tables]

    def spell(self, statements: Iterable[Statement], tables: frozenset[TableName]) -> list[str]:
        """Return the names, as the log has them, under which the statements use one of the tables."""
        index = NameIndex(tables)
        names = {name for statement in statements for name in statement.names}
        return sorted(name for name in names if index.find_any(self.views.reach([self.warehouse.read(name)])))


def load_statements(
    connection: DuckDBPyConnection,
    outcome: Outcome,
    *,
    gateway: Gateway,
    counted_from: int,
    warehouse: WarehouseTables = ANY_TABLES,
) -> Requests:
    """Read the requests from the outcome of a replay that loaded `STATEMENT_COLUMNS`."""
    columns = ", ".join(f'"{name}"' for name in STATEMENT_COLUMNS)
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE statement_shape AS
        SELECT dense_rank() OVER (ORDER BY statement.text, {columns}) - 1 AS number, statement, shape,
            statement.text AS text, statement.mean_ms AS mean_ms, {columns}
        FROM (SELECT DISTINCT statement, shape FROM {outcome.table})
        JOIN shape USING (shape) JOIN statement USING (statement)
        """
    )
    rows = connection.execute(
        f"SELECT DISTINCT number, text, mean_ms, {columns} FROM statement_shape ORDER BY number"
    ).fetchall()
    statements = [_read_statement(*row, database=warehouse.database) for row in rows]
    with little_memory(connection):
        return Requests(
            statements,
            _load_series(connection, outcome, statements, is_nocache_declined=gateway.nocache is not False),
            _load_writes(connection, outcome, statements),
            counted_from,
            warehouse,
        )


def _read_statement(number: int, text: str, mean_ms: int, *values: Any, database: str) -> Statement:
    columns = dict(zip(STATEMENT_COLUMNS, values, strict=True))
    request = read_request({"standardizedSql": text, **columns})
    return Statement(number, text, mean_ms, request, columns["tables"], database)


def _load_series(
    connection: DuckDBPyConnection,
    outcome: Outcome,
    statements: Sequence[Statement],
    *,
    is_nocache_declined: bool,
) -> list[Series]:
    declined = "n IN (SELECT n FROM request WHERE is_nocache)" if is_nocache_declined else "false"
    table = connection.execute(
        f"""
        SELECT number, played.rule, (played.kind = 'open')::BIGINT AS is_hidden, played.requested_at,
            played.weight,
            played.work_ms::BIGINT AS work_ms, played.is_failing::BIGINT AS is_failing,
            dense_rank() OVER (
                ORDER BY number, played.rule, restart, vary, is_hidden,
                    if(played.kind = 'open', played.pair, played.identity)
            )::BIGINT AS key
        FROM {outcome.table} AS played
        JOIN statement_shape ON played.statement = statement_shape.statement
            AND played.shape = statement_shape.shape
        WHERE played.is_cached
            OR (played.rule < 0 AND NOT played.is_change AND NOT {declined}
                AND {Statuses(*PASSED, *FAILED).of("played.status")})
        ORDER BY key, played.n
        """
    ).to_arrow_table()
    numbers, rules, hidden, times, works, failing, keys = (
        read_numbers(table[name])
        for name in ("number", "rule", "is_hidden", "requested_at", "work_ms", "is_failing", "key")
    )
    weights = table["weight"].combine_chunks()
    all_series = []
    start = 0
    while start < len(keys):
        end = bisect_right(keys, keys[start], start)
        all_series.append(
            Series(
                statements[numbers[start]],
                rules[start],
                bool(hidden[start]),
                times[start:end],
                works[start:end],
                failing[start:end],
                weights[start].as_py(),
            )
        )
        start = end
    return all_series


def _load_writes(
    connection: DuckDBPyConnection, outcome: Outcome, statements: Sequence[Statement]
) -> list[Write]:
    rows = connection.execute(
        f"""
        SELECT number, list(played.requested_at + played.work_ms ORDER BY n)
        FROM {outcome.table} AS played JOIN statement_shape USING (statement, shape)
        WHERE is_change AND NOT is_failing AND {NOT_RECORDED.not_of("logged")} AND {REFUSED.not_of("status")}
        GROUP BY number ORDER BY number
        """
    ).fetchall()
    return [Write(statements[number], times) for number, times in rows]


class Estimate(NamedTuple):
    """Counts of requests. ``executions`` run in the warehouse, and include revalidations."""

    hits: int = 0
    risk_low: int = 0
    risk_high: int = 0
    executions: int = 0

    def plus(self, other: Estimate) -> Estimate:
        return Estimate(*(mine + others for mine, others in zip(self, other, strict=True)))

    def times(self, weight: float) -> Estimate:
        return Estimate(*(round(weight * number) for number in self))


#: No request.
NOTHING: Final = Estimate()


def estimate(series: Series, lifetime: Lifetime, *, changes: Sequence[int], counted_from: int) -> Estimate:
    """Play one series of requests for the same result.

    Args:
        changes: the sorted times of changes of the tables that the requests read.
        counted_from: requests before this time (epoch ms) only fill the cache.
    """
    times, works, failing, markers = series.times, series.works, series.failing, lifetime.markers
    ttl_ms, stale_ms = lifetime.ttl_ms, lifetime.stale_ms
    end = len(times)
    first = bisect_left(times, counted_from) if end and times[0] < counted_from else 0
    hits = risk_low = risk_high = executions = 0
    started = born = stale_until = -1
    index = 0
    while True:
        while index < end and failing[index]:
            hits += times[index] < stale_until and index >= first
            index += 1
        if index == end:
            return Estimate(hits, risk_low, risk_high, executions)
        at = times[index]
        ready = at + works[index]
        marked = bisect_right(markers, ready)
        invalid_from = markers[marked] if marked < len(markers) else NEVER
        following = bisect_left(times, min(ready + ttl_ms, invalid_from), index + 1, end)
        fresh = bisect_left(times, ready, index + 1, following)
        executions += index >= first
        if at < stale_until:
            # The older result serves this request, and the requests before the new result is there.
            last = bisect_left(times, min(ready, stale_until), index + 1, fresh)
            begin = max(index, first)
            hits += max(last - begin, 0)
            risk_low += _count_after(changes, born, times, begin, last)
            risk_high += _count_after(changes, started, times, begin, last)
        begin = max(fresh, first)
        if begin < following:
            hits += following - begin
            risk_low += _count_after(changes, ready, times, begin, following)
            risk_high += _count_after(changes, at, times, begin, following)
        started, born = at, ready
        stale_until = min(ready + ttl_ms + stale_ms, invalid_from) if stale_ms else -1
        index = following


def _count_after(changes: Sequence[int], moment: int, times: Sequence[int], begin: int, end: int) -> int:
    """Count the requests that come at or after the first change after ``moment``."""
    change = bisect_right(changes, moment)
    if change == len(changes) or begin >= end:
        return 0
    return end - bisect_left(times, changes[change], begin, end)


#: The largest share of a rule's hits that may be at risk of being stale.
RISK_CAP: Final = 0.01


@dataclass(frozen=True, slots=True)
class Saving:
    """A sum of estimates.

    Attributes:
        low, high: bounds: all hidden literals differ, or all are equal.
        ms: the mean of the lower and the upper bound of the time saved.
    """

    low: Estimate = NOTHING
    high: Estimate = NOTHING
    ms: int = 0

    @property
    def is_safe(self) -> bool:
        """True if the share of hits at risk of being stale is at most `RISK_CAP`."""
        return all(total.risk_high <= RISK_CAP * total.hits for total in (self.low, self.high))

    def plus(self, other: Saving) -> Saving:
        return Saving(self.low.plus(other.low), self.high.plus(other.high), self.ms + other.ms)


def find_saving(requests: Requests, all_series: Iterable[Series], lifetime: Lifetime) -> Saving:
    """Estimate the time saved if the results of these requests have this lifetime."""
    low = high = NOTHING
    twice = 0
    for series in all_series:
        result = estimate(
            series,
            lifetime,
            changes=requests.changes_of(series.statement),
            counted_from=requests.counted_from,
        ).times(series.weight)
        high = high.plus(result)
        twice += series.statement.mean_ms * result.hits
        if not series.is_hidden:
            low = low.plus(result)
            twice += series.statement.mean_ms * result.hits
    return Saving(low, high, twice // 2)
