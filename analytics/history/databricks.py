"""Read Databricks' history of queries, ``system.query.history``.

Times are in ms, those without a zone in UTC. ``compute`` has the id of the warehouse. The history has neither
the catalog nor the schema of the session, nor the size of results in bytes.
Source: docs.databricks.com/en/admin/system-tables/query-history, read on 2026-11-29.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from analytics.history.rows import BadHistory, Row
from analytics.history.tables import Clock, Column, read_count, read_flag, read_records, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from analytics.history.rows import Notes, Options

_COLUMNS: Final = {
    "text": Column(("statement_text",)),
    "started": Column(("start_time",)),
    "id": Column(("statement_id",), "which repeated rows are repeated statements"),
    "took": Column(("execution_duration_ms",), "time in the warehouse, savings and the bill"),
    "total": Column(("total_duration_ms",), "how long users waited"),
    "user": Column(("executed_by",), "rules by user, and results that users may not share"),
    "session": Column(("session_id",), "sessions"),
    "compute": Column(("compute",), "the bill of each warehouse: all count as one"),
    "warehouse": Column(("compute.warehouse_id", "warehouse_id"), "a warehouse beside `compute`"),
    "kind": Column(("statement_type",), "types as Databricks names them"),
    "status": Column(("execution_status",), "failed statements, which count as others"),
    "cached": Column(("from_result_cache",), "statements that the cache of results answered"),
    "client": Column(("client_application",), "rules by the client"),
    "driver": Column(("client_driver",), "rules by the client, where it has no name"),
    "size": Column(("result_bytes", "written_bytes_to_result"), "how large results are"),
}


def read_databricks(path: Path, options: Options, notes: Notes) -> Iterator[Row]:
    """Yield the statements of a file. See `analytics.history.rows.Reader`."""
    clock = Clock(path, options.timezone)
    for number, values in read_records(path, _COLUMNS, what="Databricks", missing=notes.missing):
        (text, started, statement_id, took, total, user, session, compute) = values[:8]
        (warehouse, kind, status, cached, client, driver, size) = values[8:]
        if not text or started is None:
            raise BadHistory(
                f"{path.name}, row {number}: statement_text or start_time is empty. Texts that are "
                "encrypted by keys of your own have to be decrypted first."
            )
        state = str(status or "").upper()
        has_failed = state not in {"FINISHED", ""}
        is_cached = read_flag(cached)
        yield Row(
            id=read_text(statement_id) or f"{path.name}-{number}",
            text=text,
            started_at=clock.read(started, f"row {number}") // 1_000,
            took_ms=None if has_failed or is_cached else read_count(took),
            total_ms=read_count(total),
            user=read_text(user),
            session=read_text(session),
            host=read_text(warehouse) or _warehouse_of(compute),
            kind=read_text(kind) or "",
            client=read_text(client) or read_text(driver),
            size=read_count(size),
            failed=has_failed,
            from_result_cache=is_cached,
        )


def _warehouse_of(compute: Any) -> str | None:
    """Return the id in ``compute``, which files have as an object or as its JSON."""
    if isinstance(compute, str):
        try:
            compute = json.loads(compute)
        except ValueError:
            return compute or None
    if isinstance(compute, dict):
        found = {str(name).lower(): value for name, value in compute.items()}
        return read_text(found.get("warehouse_id") or found.get("cluster_id"))
    return None
