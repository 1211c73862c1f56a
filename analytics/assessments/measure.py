"""Measure the history of an assessment: what repeats, and what each warehouse would bill.

The figures are of the log itself, without any rule.
"""

# Queries consist of constants and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

from analytics.replay.count import bill_executions
from analytics.replay.identity import load_identities, load_statements
from analytics.replay.load import DayFile, Job
from logs.definitions import ANSWERED_BY_OWN_CACHE, MEASURED, PASSED
from logs.layout import DAY_MS, HOUR_MS
from logs.quoting import quote_text, quote_texts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from accounts.tenants.pricing import Pricing

#: The warehouse of statements of which the history names none.
_NO_HOST: Final = ""


def measure_repeats(connection: DuckDBPyConnection, files: Sequence[DayFile]) -> tuple[float, float]:
    """Return the shares of statements before which an equal one began, at most an hour or a day earlier.

    Equal are the text and all literals. Those whose literals are hidden repeat nothing. Statements without a
    text do not count.
    """
    _make_log(connection, files, where="standardizedSql IS NOT NULL")
    load_statements(connection)
    load_identities(connection)
    total, hour, day = connection.execute(
        f"""
        SELECT count(*), count(*) FILTER (gap <= {HOUR_MS}), count(*) FILTER (gap <= {DAY_MS})
        FROM (
            SELECT is_exact, CASE WHEN is_exact THEN
                timestamp - lag(timestamp) OVER (PARTITION BY pair ORDER BY timestamp) END AS gap
            FROM log JOIN statement ON statement.text = log.standardizedSql
            JOIN pair ON pair.statement = statement.statement
                AND pair.parameters IS NOT DISTINCT FROM log.parameterValues
        )
        """
    ).fetchall()[0]
    return (hour / total, day / total) if total else (0.0, 0.0)


def bill_hosts(
    connection: DuckDBPyConnection,
    files: Sequence[DayFile],
    *,
    first: date,
    last: date,
    pricing: Pricing,
) -> Mapping[str, Mapping[date, int]]:
    """Return by warehouse, and by day of the window, the milliseconds that the model bills."""
    _make_log(connection, files, where=f"{MEASURED} AND NOT ({ANSWERED_BY_OWN_CACHE})")
    executions = f"""
        SELECT coalesce(serverHostname, '{_NO_HOST}') AS scope, serverHostname AS host,
            day, timestamp AS starts, warehouseExecutionTimeMs::BIGINT AS took
        FROM log
    """
    job = Job(files=files, first_day=first, last_day=last, subject=(), current=(), pricing=pricing)
    bills = bill_executions(connection, executions, job, host_of=quote_text)
    return {host: bill.billed for host, bill in bills.items()}


def _make_log(connection: DuckDBPyConnection, files: Sequence[DayFile], *, where: str) -> None:
    names = quote_texts(file.file for file in files)
    cases = "".join(f" WHEN {quote_text(file.file)} THEN DATE '{file.day}'" for file in files)
    connection.execute(
        f"""
        CREATE OR REPLACE VIEW log AS
        SELECT *, CASE filename{cases} END AS day, NULL::BIGINT AS unit
        FROM read_parquet({names}, filename = true)
        WHERE {PASSED} AND timestamp IS NOT NULL AND {where}
        """
    )
