"""Read Snowflake's history of queries.

``SNOWFLAKE.ACCOUNT_USAGE.QUERY_HISTORY``, and the table function of ``INFORMATION_SCHEMA``, with the same
columns. Times are in ms; texts are cut at 100,000 characters. A query has a WAREHOUSE_SIZE if a warehouse
executed it, so a SELECT that has none and read no bytes was answered without one: from the cache of results,
or from metadata.
Source: docs.snowflake.com/en/sql-reference/account-usage/query_history, read on 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analytics.history.clock import Clock
from analytics.history.rows import BadHistory, Rows
from analytics.history.tables import (
    Column,
    in_batches,
    read_count,
    read_counts,
    read_each,
    read_executed,
    read_ids,
    read_records,
    read_texts,
)

if TYPE_CHECKING:
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


def read_snowflake(path: Path, options: Options, notes: Notes) -> Iterator[Rows]:
    """Yield the queries of a file. See `analytics.history.rows.Reader`."""
    clock = Clock(path, options.timezone)

    def make_rows(numbers: Sequence[int], records: Iterable[Sequence[Any]]) -> Rows:
        columns = [*zip(*records, strict=True)]
        (text, started, query_id, took, total, user, session, warehouse, size) = columns[:9]
        (database, schema, kind, status, size_bytes, scanned, cluster, client) = columns[9:]
        if not all(text) or None in started:
            raise BadHistory(
                f"{path.name}, row {numbers[0]}: QUERY_TEXT or START_TIME is empty. Read the view with a "
                "role that may see both, such as ACCOUNTADMIN."
            )
        failed = read_each(_has_failed, status)
        has_sizes = "warehouse_size" not in notes.missing
        cached = [
            has_sizes and not (has_failed or one_size or not is_select or read_count(one_scanned))
            for has_failed, one_size, is_select, one_scanned in zip(
                failed, size, read_each(_is_select, kind), scanned, strict=True
            )
        ]
        return Rows(
            id=read_ids(query_id, path, numbers),
            text=text,
            started_at=[moment // 1_000 for moment in clock.read_all(started, "row", numbers)],
            took_ms=read_executed(took, failed, cached),
            total_ms=read_counts(total),
            user=read_texts(user),
            session=read_texts(session),
            host=read_texts(warehouse),
            database=read_texts(database),
            schema=read_texts(schema),
            kind=read_texts(kind),
            client=read_texts(client),
            size=read_counts(size_bytes),
            warehouse_size=read_texts(size),
            cluster=[count or 1 for count in read_counts(cluster)],
            failed=failed,
            from_result_cache=cached,
            truncated=[len(one) >= _MAX_TEXT for one in text],
        )

    records = read_records(path, _COLUMNS, what="Snowflake", missing=notes.missing)
    yield from in_batches(records, make_rows)


def _has_failed(status: Any) -> bool:
    return str(status or "SUCCESS").upper() != "SUCCESS"


def _is_select(kind: Any) -> bool:
    return str(kind or "SELECT").upper() == "SELECT"
