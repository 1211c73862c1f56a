"""Read Snowflake's history of queries.

``SNOWFLAKE.ACCOUNT_USAGE.QUERY_HISTORY``, and the table function of ``INFORMATION_SCHEMA``, with the same
columns. Times are in ms; texts are cut at 100,000 characters. A query has a WAREHOUSE_SIZE if a warehouse
executed it, so a SELECT that has none and read no bytes was answered without one: from the cache of results,
or from metadata.
Source: docs.snowflake.com/en/sql-reference/account-usage/query_history, read on 2026-11-29.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.history.rows import BadHistory, Row
from analytics.history.tables import Clock, Column, read_count, read_records, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from analytics.history.rows import Notes, Options

_MAX_TEXT: Final = 100_000
_COLUMNS: Final = {
    "text": Column(("query_text",)),
    "started": Column(("start_time",)),
    "id": Column(("query_id",), "which repeated rows are repeated statements"),
    "took": Column(("execution_time",), "time in the warehouse, savings and the bill"),
    "total": Column(("total_elapsed_time",), "how long users waited"),
    "user": Column(("user_name",), "rules by user, and results that users may not share"),
    "session": Column(("session_id",), "sessions"),
    "warehouse": Column(("warehouse_name",), "the bill of each warehouse: all count as one"),
    "size": Column(("warehouse_size",), "queries that the cache of results answered"),
    "database": Column(("database_name",), "databases of names that leave them out"),
    "schema": Column(("schema_name",), "schemas of names that leave them out"),
    "kind": Column(("query_type",), "types as Snowflake names them"),
    "status": Column(("execution_status",), "failed statements, which count as others"),
    "bytes": Column(("bytes_written_to_result",), "how large results are"),
    "scanned": Column(("bytes_scanned",), "queries that the cache of results answered"),
    "cluster": Column(("cluster_number",), "several clusters of a warehouse, which cost more"),
    "client": Column(("client_application_id",), "rules by the client"),
}


def read_snowflake(path: Path, options: Options, notes: Notes) -> Iterator[Row]:
    """Yield the queries of a file. See `analytics.history.rows.Reader`."""
    clock = Clock(path, options.timezone)
    for number, values in read_records(path, _COLUMNS, what="Snowflake", missing=notes.missing):
        (text, started, query_id, took, total, user, session, warehouse, size) = values[:9]
        (database, schema, kind, status, size_bytes, scanned, cluster, client) = values[9:]
        if not text or started is None:
            raise BadHistory(
                f"{path.name}, row {number}: QUERY_TEXT or START_TIME is empty. Read the view with a role "
                "that may see both, such as ACCOUNTADMIN."
            )
        has_failed = str(status or "SUCCESS").upper() != "SUCCESS"
        is_cached = (
            not has_failed
            and str(kind or "SELECT").upper() == "SELECT"
            and "warehouse_size" not in notes.missing
            and not size
            and not read_count(scanned)
        )
        yield Row(
            id=read_text(query_id) or f"{path.name}-{number}",
            text=text,
            started_at=clock.read(started, f"row {number}") // 1_000,
            took_ms=None if has_failed or is_cached else read_count(took),
            total_ms=read_count(total),
            user=read_text(user),
            session=read_text(session),
            host=read_text(warehouse),
            database=read_text(database) or "",
            schema=read_text(schema) or "",
            kind=read_text(kind) or "",
            client=read_text(client),
            size=read_count(size_bytes),
            warehouse_size=read_text(size),
            cluster=read_count(cluster) or 1,
            failed=has_failed,
            from_result_cache=is_cached,
            truncated=len(text) >= _MAX_TEXT,
        )
