"""What requests ask for: their statements, and their pairs of a statement and its values.

Section "Keys" of the definition (docs/replay.md).
"""

# Queries consist of constants.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from logs.definitions import MEASURED_MISS, WAREHOUSE_TIME
from logs.quoting import quote_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: A placeholder of a statement, in the notations of all drivers, with Unicode letters and digits.
_PLACEHOLDER: Final = r"\?|%s|%\([\pL\pN_]+\)s|\$\p{Nd}+|:[\pL\pN_]+|@[\pL\pN_]+"
#: SQL for the number of values of a row; null if they are unreadable.
VALUE_COUNT: Final = """
    CASE WHEN parameterValues IS NULL THEN 0
    WHEN NOT json_valid(parameterValues) THEN NULL
    WHEN json_type(parameterValues) = 'ARRAY' THEN json_array_length(parameterValues)
    WHEN json_type(parameterValues) = 'OBJECT' THEN len(json_keys(parameterValues)) END
"""
#: SQL for whether a pair is exact, of all pairs with ``statement``, ``placeholders``, ``value_count`` and
#: ``is_ambiguous``: its values have several hashes.
IS_EXACT: Final = """
    coalesce(placeholders = value_count, false) AND NOT bool_or(is_ambiguous) OVER (PARTITION BY statement)
"""


def load_statements(connection: DuckDBPyConnection) -> None:
    """Create ``statement`` from the view ``log``.

    ``mean_ms`` is the statement's mean time in the warehouse, rounded down; 0 if the log has no time, and
    then ``is_measured`` is false. ``is_ambiguous`` if a sample shows less than the log (`draw_sample`).
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE statement AS
        SELECT row_number() OVER ()::INTEGER AS statement, standardizedSql AS text,
            coalesce(
                {WAREHOUSE_TIME} FILTER ({MEASURED_MISS}) // count(*) FILTER ({MEASURED_MISS}), 0
            )::BIGINT AS mean_ms,
            count(*) FILTER ({MEASURED_MISS}) > 0 AS is_measured,
            len(regexp_extract_all(standardizedSql, {quote_text(_PLACEHOLDER)})) AS placeholders,
            false AS is_ambiguous
        FROM log GROUP BY standardizedSql
        """
    )


def load_identities(connection: DuckDBPyConnection) -> None:
    """Create ``pair`` and ``query_hash`` from the view ``log`` and ``statement``.

    A pair is a statement with its values. It is exact if statement and values determine the result.
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE pair AS
        SELECT row_number() OVER ()::INTEGER AS pair, statement, parameters, unit,
            {IS_EXACT} AND NOT is_known_ambiguous AS is_exact
        FROM (
            SELECT statement.statement, any_value(placeholders) AS placeholders,
                any_value(statement.is_ambiguous) AS is_known_ambiguous, any_value(unit) AS unit,
                parameterValues AS parameters, {VALUE_COUNT} AS value_count,
                coalesce(
                    min(queryHash) FILTER (cacheKey IS NOT NULL)
                        <> max(queryHash) FILTER (cacheKey IS NOT NULL),
                    false
                ) AS is_ambiguous
            FROM log JOIN statement ON statement.text = log.standardizedSql
            GROUP BY statement.statement, parameterValues
        )
        """
    )
    connection.execute(
        """
        CREATE OR REPLACE TABLE query_hash AS
        SELECT ((SELECT count(*) FROM pair) + row_number() OVER ())::INTEGER AS identity, queryHash AS text
        FROM log
        WHERE cacheKey IS NOT NULL AND EXISTS (FROM pair WHERE NOT is_exact)
        GROUP BY queryHash
        """
    )
