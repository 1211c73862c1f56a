"""The input of a replay, and its log as tables of a DuckDB with integers in place of texts.

Sections "Rows" and "Time" of the definition (docs/replay.md).
"""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from accounts.tenants.pricing import Pricing
from analytics.replay.identity import load_identities, load_statements
from analytics.replay.sample import draw_sample
from logs.columns import COLUMNS
from logs.definitions import (
    ANSWERED_BY_OWN_CACHE,
    DECIDED,
    EXECUTED,
    FAILED,
    MEASURED,
    MEASURED_MISS,
)
from logs.quoting import quote_name, quote_text, quote_texts
from rules.conditions.keys import CONDITION_KEYS
from rules.dialects.text import without_comments_sql
from rules.language import VARY_COLUMNS
from rules.tables.warehouse import ANY_TABLES, WarehouseTables
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.sample import Sample, Sampling
    from rules.language import Rule


@dataclass(frozen=True, slots=True)
class Ruleset:
    """Rules that apply from a time on (epoch ms). The first ruleset of a list also applies before it."""

    starts_at: int
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Marker:
    """An invalidation marker that a person made: its target and its time (epoch ms)."""

    rule_id: str
    at: int


@dataclass(frozen=True, slots=True)
class Gateway:
    """What the Gateway does by itself; None if it is not known.

    Attributes:
        nocache: it skips the cache for requests with ``cacheOverride`` = ``nocache``.
        non_deterministic: it skips the cache for statements with non-deterministic functions, unless
            ``cacheOverride`` is ``cache``.
        keys_per_user: it keeps the results of users apart, also under rules that do not vary.
    """

    nocache: bool | None = None
    non_deterministic: bool | None = None
    keys_per_user: bool | None = None


@dataclass(frozen=True, slots=True)
class DayFile:
    """A Parquet file of a day. A day may have several, in the order of their rows."""

    day: date
    file: str


@dataclass(frozen=True, slots=True)
class Job:
    """One replay.

    Attributes:
        files: the files of the chosen days and of the warm-up days before them.
        first_day, last_day: the days that are counted, both included.
        subject: the ruleset to replay.
        current: the current ruleset.
        in_force: the rulesets that were in force, oldest first, for the calibration.
        changes: the times of all writes of the ruleset (epoch ms). Each write empties the cache.
        gateway: the settings that the caller knows. The others are learned from the log.
        cache_enabled: False if the tenant's configuration has the Gateway decline every cache rule. The
            rulesets are replayed all the same.
        hour: the current hour of the day (UTC). The cost of publishing has it as ``now``.
        tables: what the tenant says of its tables.
        pricing: how the warehouse bills its time.
        sampling: how to choose the identities that are replayed; None for all.
        is_assessment: the log is a warehouse's own history. A column that it has nowhere counts as null.
    """

    files: Sequence[DayFile]
    first_day: date
    last_day: date
    subject: tuple[Rule, ...]
    current: tuple[Rule, ...]
    in_force: Sequence[Ruleset] = ()
    changes: Sequence[int] = ()
    markers: Sequence[Marker] = ()
    warmup_days: int = 1
    gateway: Gateway = field(default_factory=Gateway)
    cache_enabled: bool = True
    hour: int = 0
    tables: WarehouseTables = ANY_TABLES
    pricing: Pricing = field(default_factory=lambda: Pricing.of([]))
    sampling: Sampling | None = None
    is_assessment: bool = False

    @property
    def rulesets_in_force(self) -> Sequence[Ruleset]:
        """The rulesets that were in force; the current one if they are not known."""
        return self.in_force or [Ruleset(0, self.current)]

    @property
    def has_one_ruleset(self) -> bool:
        """True if the current ruleset was in force all the time."""
        return [ruleset.rules for ruleset in self.rulesets_in_force] == [self.current]

    @property
    def before(self) -> date:
        """The day before the window."""
        return days_before(self.first_day, 1)


@contextmanager
def registered(connection: DuckDBPyConnection, **tables: pa.Table) -> Iterator[None]:
    """Register Arrow tables by name, so that queries inside the block can read them."""
    for name, table in tables.items():
        connection.register(name, table)
    try:
        yield
    finally:
        for name in tables:
            connection.unregister(name)


#: The memory of DuckDB while it reads numbers, below every `REPLAY_MEMORY_BYTES`: more only keeps the file.
_LITTLE_MEMORY: Final = "384MB"


@contextmanager
def little_memory(connection: DuckDBPyConnection) -> Iterator[None]:
    """Let DuckDB use little memory inside the block, which groups and orders no texts."""
    (limit,) = connection.execute("SELECT current_setting('memory_limit')").fetchall()[0]
    connection.execute(f"SET memory_limit = {quote_text(_LITTLE_MEMORY)}")
    yield
    # Not after an error: it ends the replay, and DuckDB may refuse every statement.
    connection.execute(f"SET memory_limit = {quote_text(limit)}")


def fill_table(connection: DuckDBPyConnection, table: str, rows: str, *, is_new: bool) -> None:
    """Add the rows of a query to a table. If the table ``is_new``, make it, or replace an earlier one."""
    connection.execute(
        f"CREATE OR REPLACE TABLE {table} AS {rows}" if is_new else f"INSERT INTO {table} {rows}"
    )


def read_numbers(column: Any) -> memoryview[int]:
    """Return a column of integers without nulls as a sequence. Those of 64 bits are not copied."""
    numbers = column.cast(pa.int64()).combine_chunks()
    if isinstance(numbers, pa.ChunkedArray):
        numbers = pa.concat_arrays(numbers.chunks) if numbers.num_chunks else pa.array([], pa.int64())
    if not len(numbers):
        return memoryview(b"").cast("q")
    view = memoryview(numbers.buffers()[1]).cast("B").cast("q")
    return view[numbers.offset : numbers.offset + len(numbers)]


def as_column(numbers: array[int]) -> Any:
    """Return an array of 64-bit integers as a column that shares its memory."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def make_schema(**fields: pa.DataType) -> pa.Schema:
    """Return a schema of nullable columns."""
    return pa.schema([pa.field(name, data_type) for name, data_type in fields.items()])


#: The column of ``request`` with the number of the text in a column that results can vary by.
NUMBER_OF: Final = {
    column: f"vary_{number}" if column != "userName" else "user_name"
    for number, column in enumerate(VARY_COLUMNS)
}
#: The rows that a ruleset decides. Other rows are only counted.
_IS_DECIDABLE: Final = (
    f'"timestamp" IS NOT NULL AND standardizedSql IS NOT NULL AND coalesce({DECIDED}, false)'
)
_OPTIONAL: Final = {key.name for key in CONDITION_KEYS.values() if key.is_optional}


@dataclass(frozen=True, slots=True)
class LoadedRequests:
    """A summary of the loaded requests. The numbers are counts over the counted days.

    Attributes:
        empty_columns: the columns of the rules that are null in every row, of each day that is left out.
        absent_columns: those that are null in every row of an assessment.
        restarts: the sorted times (epoch ms) at which the cache was emptied.
        is_exact: the log hides no literals, not even on warm-up days.
        sample: what was loaded of them; None for all.
        comments_vary: statements that differ in comments alone are one.
    """

    empty_columns: Mapping[date, list[str]]
    absent_columns: Sequence[str]
    decidable: int
    outside: int
    exact: int
    known: int
    open: int
    restarts: Sequence[int]
    is_exact: bool
    sample: Sample | None = None
    comments_vary: bool = False


def load_requests(
    connection: DuckDBPyConnection,
    files: Sequence[DayFile],
    *,
    first_day: date,
    columns: Collection[str],
    changes: Sequence[int],
    varied: Collection[str] = (),
    sampling: Sampling | None = None,
    is_assessment: bool = False,
    tests_text: bool = False,
) -> LoadedRequests:
    """Create the tables ``request``, ``shape``, ``statement`` and ``table_list`` for a replay.

    ``outside_execution`` has what the warehouse also executed, whatever the rules are. Each request of a
    sample stands for ``weight`` requests.

    Args:
        first_day: the first day that is counted. The days before it only fill the cache.
        columns: the columns that the rules read.
        changes: the times of ruleset writes (epoch ms).
        varied: the columns that results vary by.
        sampling: how to choose the identities that are loaded; None for all.
        is_assessment: no day is left out.
        tests_text: a rule tests the text of statements, with its comments.
    """
    _make_log_view(connection, files, first_day=first_day)
    outside, left_out, absent = _read_days(connection, sorted(columns), is_assessment=is_assessment)
    kept = [file for file in files if file.day not in left_out]
    _make_log_view(connection, kept, first_day=first_day)
    comments_vary = _join_comments(connection, applies=not tests_text)
    load_statements(connection)
    sample = None
    if sampling is not None:
        version_restarts = _find_version_restarts(connection, _ORDERED_LOG)
        sample = draw_sample(connection, sampling)
    load_identities(connection)
    _load_shapes(connection, columns)
    connection.execute(
        """
        CREATE OR REPLACE TABLE table_list AS
        SELECT row_number() OVER ()::INTEGER AS table_list, tables AS text FROM log GROUP BY tables
        """
    )
    # Executions outside, of which a sample bills none, need the texts of all entries.
    numbers = {name: NUMBER_OF[name] for name in sorted({*varied, *_ALWAYS_NUMBERED})}
    _load_varied(connection, numbers, "entry" if sample is None else "log")
    _load_rows(connection, columns, numbers)
    if sample is None:
        version_restarts = _find_version_restarts(connection, _ORDERED_REQUESTS)
        _load_outside_executions(connection)
    decidable, exact, known, is_exact = connection.execute(
        """
        SELECT coalesce(sum(weight) FILTER (is_counted), 0),
            coalesce(sum(weight) FILTER (is_counted AND kind = 'exact'), 0),
            coalesce(sum(weight) FILTER (is_counted AND kind = 'known'), 0),
            count(*) FILTER (kind = 'open') = 0
        FROM request
        """
    ).fetchall()[0]
    decidable, exact, known = map(round, (decidable, exact, known))
    return LoadedRequests(
        empty_columns=left_out,
        absent_columns=absent,
        decidable=decidable,
        outside=outside,
        exact=exact,
        known=known,
        open=max(decidable - exact - known, 0),
        restarts=sorted([*changes, *version_restarts]),
        is_exact=is_exact,
        sample=sample,
        comments_vary=comments_vary,
    )


def _read_days(
    connection: DuckDBPyConnection, columns: Sequence[str], *, is_assessment: bool
) -> tuple[int, dict[date, list[str]], list[str]]:
    """Return the number of rows outside, the columns for which each day that is left out lacks values, and
    those that an assessment has nowhere.

    A day is left out if its log may be older than a column. Requests may be without an optional column: once
    the log has it, null is a value.
    """
    counts = "".join(f", count({quote_name(name)}) FILTER ({_IS_DECIDABLE})" for name in columns)
    days = connection.execute(
        f"""
        SELECT day, is_counted, count(*), count(*) FILTER ({_IS_DECIDABLE}){counts} FROM entry
        GROUP BY day, is_counted ORDER BY day
        """
    ).fetchall()
    known: set[str] = set()
    absent = set(columns) if is_assessment else set()
    left_out = {}
    outside = 0
    for day, is_counted, rows, decidable, *values in days:
        filled = {name for name, number in zip(columns, values, strict=True) if number}
        absent -= filled
        if (
            not is_assessment
            and decidable
            and (empty := [name for name in columns if name not in filled | known])
        ):
            left_out[day] = empty
        elif is_counted:
            outside += rows - decidable
        known |= _OPTIONAL & filled
    return outside, left_out, sorted(absent)


#: Above the number of rows of every file.
_MAX_FILE_ROWS: Final = 1 << 40


def _make_log_view(connection: DuckDBPyConnection, files: Sequence[DayFile], *, first_day: date) -> None:
    """Create the view ``entry`` of all rows, and ``decidable`` and ``log`` of the decidable ones.

    Each counts once. ``place`` is the order in which rows are stored.
    """
    days, place, source = "NULL::DATE", "NULL::BIGINT", _EMPTY
    if files:

        def by_file(values: Iterable[object]) -> str:
            cases = (
                f"WHEN {quote_text(file.file)} THEN {value}"
                for file, value in zip(files, values, strict=True)
            )
            return f"CASE filename {' '.join(cases)} END"

        names = quote_texts(file.file for file in files)
        source = f"read_parquet({names}, filename = true, file_row_number = true)"
        days = by_file(f"DATE '{file.day}'" for file in files)
        place = f"{by_file(number * _MAX_FILE_ROWS for number in range(len(files)))} + file_row_number"
    connection.execute(
        f"""
        CREATE OR REPLACE VIEW entry AS
        SELECT *, {days} AS day, {days} >= DATE '{first_day}' AS is_counted,
            {place} AS place
        FROM {source}
        """
    )
    connection.execute(
        f"""
        CREATE OR REPLACE VIEW decidable AS
        SELECT *, 1 AS weight, NULL::BIGINT AS unit FROM entry WHERE {_IS_DECIDABLE}
        """
    )
    connection.execute("CREATE OR REPLACE VIEW log AS FROM decidable")


def _join_comments(connection: DuckDBPyConnection, *, applies: bool) -> bool:
    """Let ``decidable`` show statements without comments where these vary and no rule decided.

    Return if some do.

    Creates ``free_of_comments``. A Gateway that keeps comments in its keys shows it where a rule decided.
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE free_of_comments AS
        WITH undecided AS MATERIALIZED (
            SELECT standardizedSql AS text FROM log GROUP BY text HAVING bool_and(matchedRule IS NULL)
        )
        SELECT text, {without_comments_sql("text")} AS plain FROM undecided
        WHERE plain IS NOT NULL AND {str(applies).lower()} QUALIFY count(*) OVER (PARTITION BY plain) > 1
        """
    )
    if not connection.execute("SELECT count(*) FROM free_of_comments").fetchall()[0][0]:
        return False
    connection.execute(
        f"""
        CREATE OR REPLACE VIEW decidable AS
        SELECT * EXCLUDE (text, plain) REPLACE (coalesce(plain, standardizedSql) AS standardizedSql),
            1 AS weight, NULL::BIGINT AS unit
        FROM entry LEFT JOIN free_of_comments ON text = standardizedSql WHERE {_IS_DECIDABLE}
        """
    )
    return True


def _load_shapes(connection: DuckDBPyConnection, columns: Collection[str]) -> None:
    """Create ``shape``: the distinct combinations of values in the columns that the rules read."""
    names = ", ".join(quote_name(name) for name in sorted(columns))
    query = f"SELECT {names} FROM log GROUP BY {names}" if names else "SELECT 1 AS nothing"
    connection.execute(
        f"CREATE OR REPLACE TABLE shape AS SELECT row_number() OVER ()::INTEGER AS shape, * FROM ({query})"
    )


#: The columns that bills, leaks and the search for recommendations read.
_ALWAYS_NUMBERED: Final = frozenset({"serverHostname", "userName"})


def _load_varied(connection: DuckDBPyConnection, numbers: Mapping[str, str], source: str) -> None:
    """Create a table for each column of `NUMBER_OF`: its texts, with a number for each."""
    for column, number in numbers.items():
        connection.execute(
            f"""
            CREATE OR REPLACE TABLE text_of_{number} AS
            SELECT row_number() OVER ()::INTEGER AS {number}, {quote_name(column)} AS text FROM {source}
            WHERE {quote_name(column)} IS NOT NULL GROUP BY text
            """
        )


#: A status takes a byte, and has the order of its text.
STATUS_TYPE: Final = f"ENUM ({', '.join(map(quote_text, sorted(DECIDED)))})"


def _load_rows(connection: DuckDBPyConnection, columns: Collection[str], numbers: Mapping[str, str]) -> None:
    """Create ``request``. Its rows are narrow: a large log has many.

    ``place`` is null for an entry without an id.
    """
    same_shape = " AND ".join(
        f"shape.{quote_name(name)} IS NOT DISTINCT FROM log.{quote_name(name)}" for name in sorted(columns)
    )
    joins = "\n".join(
        f"LEFT JOIN text_of_{number} ON text_of_{number}.text = log.{quote_name(column)}"
        for column, number in numbers.items()
    )
    connection.execute(
        "CREATE OR REPLACE TYPE rule_of_log AS ENUM"
        " (SELECT DISTINCT matchedRule FROM log WHERE matchedRule IS NOT NULL ORDER BY matchedRule)"
    )
    rows = f"""
        SELECT {{before}} + row_number() OVER () AS n,
            * EXCLUDE (log_id, place, has_id), if(has_id, place, NULL) AS place
        FROM (
            SELECT log.timestamp AS requested_at, coalesce(logId, '') AS log_id, logId IS NOT NULL AS has_id,
                place, day, is_counted, cacheStatus::{STATUS_TYPE} AS logged,
                matchedRule::rule_of_log AS logged_rule, cacheKeyVersion AS key_version, shape.shape,
                statement.statement, pair.pair, table_list.table_list,
                if(log.{ANSWERED_BY_OWN_CACHE}, 0, statement.mean_ms) AS mean_ms,
                CASE WHEN log.{ANSWERED_BY_OWN_CACHE} THEN 0 WHEN {MEASURED_MISS}
                    THEN warehouseExecutionTimeMs ELSE statement.mean_ms END AS work_ms,
                CASE WHEN log.{ANSWERED_BY_OWN_CACHE} THEN NULL
                    WHEN {EXECUTED} AND {MEASURED} THEN warehouseExecutionTimeMs
                    WHEN {FAILED.not_of("cacheStatus")} AND statement.is_measured THEN statement.mean_ms
                    END AS took_ms,
                CASE WHEN pair.is_exact THEN 'exact' WHEN cacheKey IS NOT NULL THEN 'known' ELSE 'open'
                    END::ENUM ('exact', 'known', 'open') AS kind,
                CASE WHEN pair.is_exact THEN pair.pair
                    WHEN cacheKey IS NOT NULL THEN query_hash.identity END AS identity,
                greatest(responseSize, 0) AS bytes,
                coalesce(log.cacheOverride = 'nocache', false) AS is_nocache,
                coalesce(log.hasNonDeterministicFunctions, false)
                    AND log.cacheOverride IS DISTINCT FROM 'cache' AS is_non_deterministic,
                coalesce(log.isDataChange, false) OR coalesce(log.isDDL, false) AS is_change,
                if(cacheKey IS NOT NULL, hash(cacheKey), NULL) AS cache_key, log.weight,
                {", ".join(numbers.values())}
            FROM log
            JOIN statement ON statement.text = log.standardizedSql
            JOIN pair ON pair.statement = statement.statement
                AND pair.parameters IS NOT DISTINCT FROM log.parameterValues
            JOIN shape ON {same_shape or "true"}
            JOIN table_list ON table_list.text IS NOT DISTINCT FROM log.tables
            LEFT JOIN query_hash ON query_hash.text IS NOT DISTINCT FROM log.queryHash
            {joins}
            WHERE {{span}} ORDER BY requested_at, log_id, place
        )
    """
    before = 0
    for span in _find_spans(connection):
        fill_table(connection, "request", rows.format(before=before, span=span), is_new=not before)
        (before,) = connection.execute("SELECT count(*) FROM request").fetchall()[0]


#: So many entries, about, are ordered, played or joined at a time: then a large log needs little memory.
AT_A_TIME: Final = 800_000
_SPAN_MS: Final = 600_000


def _find_spans(connection: DuckDBPyConnection) -> Iterator[str]:
    """Yield conditions on the time of entries, in order, that part them."""
    times = connection.execute(
        f"""
        SELECT "timestamp" // {_SPAN_MS} * {_SPAN_MS} AS starts, count(*) FROM entry
        WHERE "timestamp" IS NOT NULL GROUP BY starts ORDER BY starts
        """
    ).fetchall()
    condition, entries = "true", 0
    for starts, count in times:
        if entries and entries + count > AT_A_TIME:
            yield f"{condition} AND log.timestamp < {starts}"
            condition, entries = f"log.timestamp >= {starts}", 0
        entries += count
    yield condition


def _load_outside_executions(connection: DuckDBPyConnection) -> None:
    """Create ``outside_execution``: rows without a statement that the warehouse executed."""
    number = NUMBER_OF["serverHostname"]
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE outside_execution AS
        SELECT {number} AS host, day, entry.timestamp AS starts, warehouseExecutionTimeMs::BIGINT AS took
        FROM entry LEFT JOIN text_of_{number} ON text_of_{number}.text = entry.serverHostname
        WHERE entry.timestamp IS NOT NULL AND standardizedSql IS NULL AND {MEASURED}
            AND {EXECUTED}
        """
    )


_ORDERED_REQUESTS: Final = "SELECT key_version, requested_at, n AS position FROM request"
#: All entries of a log, before a sample is drawn.
_ORDERED_LOG: Final = (
    "SELECT cacheKeyVersion AS key_version, timestamp AS requested_at, timestamp AS position FROM log"
)


def _find_version_restarts(connection: DuckDBPyConnection, source: str) -> list[int]:
    """Return the times of the first requests with each new highest key version.

    ``source`` is SQL for ``key_version``, ``requested_at`` and ``position``, by which requests are ordered.
    """
    versions = connection.execute(
        f"""
        SELECT key_version, arg_min(requested_at, position) FROM ({source}) WHERE key_version IS NOT NULL
        GROUP BY key_version ORDER BY min(position), key_version
        """
    ).fetchall()
    restarts = []
    highest = None
    for version, at in versions:
        if highest is None or version > highest:
            if highest is not None:
                restarts.append(at)
            highest = version
    return restarts


#: A log without rows.
_EMPTY: Final = "(SELECT {columns} WHERE false)".format(
    columns=", ".join(f"NULL::{column.type} AS {quote_name(column.name)}" for column in COLUMNS)
)
