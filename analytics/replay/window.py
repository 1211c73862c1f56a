"""Load the requests of the chosen days into a temporary table, with integers in place of texts.

Sections "Rows", "Time" and "Key" of the definition (docs/replay.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from analytics.replay.identity import load_identities
from analytics.replay.placing import NUMBER_OF
from logs.definitions import DECIDED, EXECUTED, FAILED, MEASURED, MEASURED_MISS
from logs.quoting import quote_name, quote_text, quote_texts
from rules.conditions.keys import CONDITION_KEYS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import date

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import DayFile

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
        restarts: the sorted times (epoch ms) at which the cache was emptied.
        is_exact: the log hides no literals, not even on warm-up days.
    """

    empty_columns: Mapping[date, list[str]]
    decidable: int
    outside: int
    exact: int
    known: int
    open: int
    restarts: Sequence[int]
    is_exact: bool


def load_requests(
    connection: DuckDBPyConnection,
    files: Sequence[DayFile],
    *,
    first_day: date,
    columns: Collection[str],
    changes: Sequence[int],
) -> LoadedRequests:
    """Create the tables ``request``, ``shape``, ``statement`` and ``table_list`` for a replay.

    ``outside_execution`` has what the warehouse also executed, whatever the rules are.

    Args:
        first_day: the first day that is counted. The days before it only fill the cache.
        columns: the columns that the rules read.
        changes: the times of ruleset writes (epoch ms).
    """
    contents = [
        _read_content(connection, day, list(own), columns)
        for day, own in groupby(files, key=attrgetter("day"))
    ]
    left_out = _find_empty_columns(contents)
    kept = [file for file in files if file.day not in left_out]
    _make_log_view(connection, kept, first_day=first_day)
    load_identities(connection)
    _load_shapes(connection, columns)
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE table_list AS
        SELECT row_number() OVER () AS table_list, tables AS text FROM log GROUP BY tables
        """
    )
    _load_varied(connection)
    _load_rows(connection, columns)
    _load_outside_executions(connection)
    decidable, exact, known, is_exact = connection.execute(
        """
        SELECT count(*) FILTER (is_counted), count(*) FILTER (is_counted AND kind = 'exact'),
            count(*) FILTER (is_counted AND kind = 'known'), count(*) FILTER (kind = 'open') = 0
        FROM request
        """
    ).fetchall()[0]
    return LoadedRequests(
        empty_columns=left_out,
        decidable=decidable,
        outside=sum(
            content.outside
            for content in contents
            if content.day >= first_day and content.day not in left_out
        ),
        exact=exact,
        known=known,
        open=decidable - exact - known,
        restarts=sorted([*changes, *_find_version_restarts(connection)]),
        is_exact=is_exact,
    )


def _source(files: Sequence[DayFile]) -> str:
    return (
        f"read_parquet({quote_texts(file.file for file in files)}, filename = true, file_row_number = true)"
    )


@dataclass(frozen=True, slots=True)
class _DayContent:
    """A day: the number of rows outside, and the columns of the rules that the other rows have, and lack."""

    day: date
    outside: int
    filled: Sequence[str]
    empty: Sequence[str]


def _read_content(
    connection: DuckDBPyConnection, day: date, files: Sequence[DayFile], columns: Collection[str]
) -> _DayContent:
    names = sorted(columns)
    counts = "".join(f", count({quote_name(name)}) FILTER ({_IS_DECIDABLE})" for name in names)
    rows, decidable, *values = connection.execute(
        f"SELECT count(*), count(*) FILTER ({_IS_DECIDABLE}){counts} FROM {_source(files)}"  # noqa: S608
    ).fetchall()[0]
    counted = list(zip(names, values, strict=True)) if decidable else []
    return _DayContent(
        day,
        rows - decidable,
        filled=[name for name, number in counted if number],
        empty=[name for name, number in counted if not number],
    )


def _find_empty_columns(contents: Iterable[_DayContent]) -> dict[date, list[str]]:
    """Return the columns for which a day is left out: its log may be older than they are.

    Requests may be without an optional column. Once the log has it, null is a value.
    """
    known: set[str] = set()
    left_out = {}
    for content in sorted(contents, key=attrgetter("day")):
        if empty := [name for name in content.empty if name not in known]:
            left_out[content.day] = empty
        known |= _OPTIONAL.intersection(content.filled)
    return left_out


def _make_log_view(connection: DuckDBPyConnection, files: Sequence[DayFile], *, first_day: date) -> None:
    """Create the view ``entry`` of all rows, and ``log`` of the decidable ones."""
    days = "NULL::DATE"
    if files:
        cases = "".join(f" WHEN {quote_text(file.file)} THEN DATE '{file.day}'" for file in files)
        days = f"CASE filename{cases} END"
    source = _source(files) if files else _EMPTY
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP VIEW entry AS
        SELECT *, {days} AS day, {days} >= DATE '{first_day}' AS is_counted FROM {source}
        """  # noqa: S608
    )
    connection.execute(f"CREATE OR REPLACE TEMP VIEW log AS FROM entry WHERE {_IS_DECIDABLE}")


def _load_shapes(connection: DuckDBPyConnection, columns: Collection[str]) -> None:
    """Create ``shape``: the distinct combinations of values in the columns that the rules read."""
    names = ", ".join(quote_name(name) for name in sorted(columns))
    query = f"SELECT {names} FROM log GROUP BY {names}" if names else "SELECT 1 AS nothing"  # noqa: S608
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE shape AS SELECT row_number() OVER () AS shape, * FROM ({query})"  # noqa: S608
    )


def _load_varied(connection: DuckDBPyConnection) -> None:
    """Create a table for each column that results can vary by: its texts, with a number for each."""
    for column, number in NUMBER_OF.items():
        connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE text_of_{number} AS
            SELECT row_number() OVER () AS {number}, {quote_name(column)} AS text FROM entry
            WHERE {quote_name(column)} IS NOT NULL GROUP BY text
            """  # noqa: S608
        )


def _load_rows(connection: DuckDBPyConnection, columns: Collection[str]) -> None:
    same_shape = " AND ".join(
        f"shape.{quote_name(name)} IS NOT DISTINCT FROM log.{quote_name(name)}" for name in sorted(columns)
    )
    joins = "\n".join(
        f"LEFT JOIN text_of_{number} ON text_of_{number}.text = log.{quote_name(column)}"
        for column, number in NUMBER_OF.items()
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE request AS
        SELECT
            row_number() OVER (
                ORDER BY log.timestamp, coalesce(logId, ''), day, file_row_number
            ) AS n,
            log.timestamp AS requested_at, is_counted, logId AS log_id, cacheStatus AS logged,
            matchedRule AS logged_rule, cacheKeyVersion AS key_version, shape.shape,
            statement.statement, pair.pair, table_list.table_list, statement.mean_ms,
            CASE WHEN {MEASURED_MISS}
                THEN warehouseExecutionTimeMs ELSE statement.mean_ms END AS work_ms,
            CASE WHEN {EXECUTED} AND {MEASURED} THEN warehouseExecutionTimeMs
                WHEN {FAILED.not_of("cacheStatus")} AND statement.is_measured THEN statement.mean_ms
                END AS took_ms,
            day,
            CASE WHEN pair.is_exact THEN 'exact' WHEN cacheKey IS NOT NULL THEN 'known' ELSE 'open' END
                AS kind,
            CASE WHEN pair.is_exact THEN pair.pair WHEN cacheKey IS NOT NULL THEN query_hash.identity END
                AS identity,
            greatest(responseSize, 0) AS bytes,
            coalesce(log.cacheOverride = 'nocache', false) AS is_nocache,
            coalesce(log.hasNonDeterministicFunctions, false)
                AND log.cacheOverride IS DISTINCT FROM 'cache' AS is_non_deterministic,
            coalesce(log.isDataChange, false) OR coalesce(log.isDDL, false) AS is_change,
            md5_number(cacheKey) AS cache_key, {", ".join(NUMBER_OF.values())}
        FROM log
        JOIN statement ON statement.text = log.standardizedSql
        JOIN pair ON pair.statement = statement.statement
            AND pair.parameters IS NOT DISTINCT FROM log.parameterValues
        JOIN shape ON {same_shape or "true"}
        JOIN table_list ON table_list.text IS NOT DISTINCT FROM log.tables
        LEFT JOIN query_hash ON query_hash.text IS NOT DISTINCT FROM log.queryHash
        {joins}
        """  # noqa: S608
    )


def _load_outside_executions(connection: DuckDBPyConnection) -> None:
    """Create ``outside_execution``: rows without a statement that the warehouse executed."""
    number = NUMBER_OF["serverHostname"]
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE outside_execution AS
        SELECT {number} AS host, day, entry.timestamp AS starts, warehouseExecutionTimeMs::BIGINT AS took
        FROM entry LEFT JOIN text_of_{number} ON text_of_{number}.text = entry.serverHostname
        WHERE entry.timestamp IS NOT NULL AND standardizedSql IS NULL AND {MEASURED}
            AND {EXECUTED}
        """  # noqa: S608
    )


def _find_version_restarts(connection: DuckDBPyConnection) -> list[int]:
    """Return the times of the first requests with each new highest key version."""
    versions = connection.execute(
        """
        SELECT key_version, arg_min(requested_at, n) FROM request WHERE key_version IS NOT NULL
        GROUP BY key_version ORDER BY min(n)
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


_TYPES: Final = {
    "BIGINT": ("timestamp", "responseSize", "file_row_number"),
    "INTEGER": ("warehouseExecutionTimeMs", "cacheKeyVersion", "tableCount"),
    "BOOLEAN": ("isReadOnly", "isDataChange", "isDDL", "hasParameters", "hasNonDeterministicFunctions"),
    "VARCHAR": (
        "standardizedSql", "cacheStatus", "cacheKey", "matchedRule", "queryHash", "parameterValues",
        "statementType", "cacheOverride", "tables", "logId", "operationType", "adapterType",
        "serverHostname", "userName", "userTokenHash", "sessionId", "clientIp", "userAgent",
        "host", "origin", "referer",
    ),
}  # fmt: skip
_EMPTY: Final = "(SELECT {columns} WHERE false)".format(
    columns=", ".join(
        f"NULL::{sql_type} AS {quote_name(name)}" for sql_type, names in _TYPES.items() for name in names
    )
)
