"""Number statements and results. Requests for the same result get the same number.

Section "Time" and "Key" of the definition (docs/replay.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from logs.definitions import MEASURED_MISS, WAREHOUSE_TIME
from logs.quoting import quote_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: A placeholder of a statement, in the notations of all drivers, with Unicode letters and digits.
_PLACEHOLDER: Final = r"\?|%s|%\([\pL\pN_]+\)s|\$\p{Nd}+|:[\pL\pN_]+|@[\pL\pN_]+"

_VALUE_COUNT: Final = """
    CASE WHEN parameterValues IS NULL THEN 0
    WHEN NOT json_valid(parameterValues) THEN NULL
    WHEN json_type(parameterValues) = 'ARRAY' THEN json_array_length(parameterValues)
    WHEN json_type(parameterValues) = 'OBJECT' THEN len(json_keys(parameterValues)) END
"""


def load_identities(connection: DuckDBPyConnection) -> None:
    """Create ``statement``, ``pair`` and ``query_hash`` from the view ``log``.

    A pair is a statement with its values. It is exact if statement and values determine the result.
    ``mean_ms`` is the statement's mean time in the warehouse, rounded down; 0 if the log has no time, and
    then ``is_measured`` is false.
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE statement AS
        SELECT row_number() OVER () AS statement, standardizedSql AS text,
            coalesce(
                {WAREHOUSE_TIME} FILTER ({MEASURED_MISS}) // count(*) FILTER ({MEASURED_MISS}), 0
            )::BIGINT AS mean_ms,
            count(*) FILTER ({MEASURED_MISS}) > 0 AS is_measured,
            len(regexp_extract_all(standardizedSql, {quote_text(_PLACEHOLDER)})) AS placeholders
        FROM log GROUP BY standardizedSql
        """  # noqa: S608
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE pair AS
        SELECT row_number() OVER () AS pair, statement, parameters,
            coalesce(placeholders = value_count, false) AND NOT bool_or(is_ambiguous) OVER (
                PARTITION BY statement
            ) AS is_exact
        FROM (
            SELECT statement.statement, any_value(placeholders) AS placeholders,
                parameterValues AS parameters, {_VALUE_COUNT} AS value_count,
                coalesce(
                    min(queryHash) FILTER (cacheKey IS NOT NULL)
                        <> max(queryHash) FILTER (cacheKey IS NOT NULL),
                    false
                ) AS is_ambiguous
            FROM log JOIN statement ON statement.text = log.standardizedSql
            GROUP BY statement.statement, parameterValues
        )
        """  # noqa: S608
    )
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE query_hash AS
        SELECT (SELECT count(*) FROM pair) + row_number() OVER () AS identity, queryHash AS text
        FROM log
        WHERE cacheKey IS NOT NULL AND EXISTS (FROM pair WHERE NOT is_exact)
        GROUP BY queryHash
        """
    )
