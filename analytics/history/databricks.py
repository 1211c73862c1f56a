"""Read Databricks' history of queries, ``system.query.history``.

Times are in ms, those without a zone in UTC. ``compute`` has the id of the warehouse. The history has neither
the catalog nor the schema of the session, nor the size of results in bytes.
Source: docs.databricks.com/en/admin/system-tables/query-history, read on 2026-11-29.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analytics.history.clock import Clock
from analytics.history.rows import BadHistory, Rows
from analytics.history.tables import (
    Column,
    in_batches,
    read_counts,
    read_each,
    read_executed,
    read_flag,
    read_ids,
    read_records,
    read_text,
    read_texts,
)

if TYPE_CHECKING:
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


def read_databricks(path: Path, options: Options, notes: Notes) -> Iterator[Rows]:
    """Yield the statements of a file. See `analytics.history.rows.Reader`."""
    clock = Clock(path, options.timezone)

    def make_rows(numbers: Sequence[int], records: Iterable[Sequence[Any]]) -> Rows:
        columns = [*zip(*records, strict=True)]
        (text, started, statement_id, took, total, user, session, compute) = columns[:8]
        (warehouse, kind, status, cached, client, driver, size) = columns[8:]
        if not all(text) or None in started:
            raise BadHistory(
                f"{path.name}, row {numbers[0]}: statement_text or start_time is empty. Texts that are "
                "encrypted by keys of your own have to be decrypted first."
            )
        failed = read_each(_has_failed, status)
        from_cache = read_each(read_flag, cached)
        return Rows(
            id=read_ids(statement_id, path, numbers),
            text=text,
            started_at=[moment // 1_000 for moment in clock.read_all(started, "row", numbers)],
            took_ms=read_executed(took, failed, from_cache),
            total_ms=read_counts(total),
            user=read_texts(user),
            session=read_texts(session),
            host=[
                one or _warehouse_of(other) for one, other in zip(read_texts(warehouse), compute, strict=True)
            ],
            kind=read_texts(kind),
            client=[one or other for one, other in zip(read_texts(client), read_texts(driver), strict=True)],
            size=read_counts(size),
            failed=failed,
            from_result_cache=from_cache,
        )

    records = read_records(path, _COLUMNS, what="Databricks", missing=notes.missing)
    yield from in_batches(records, make_rows)


def _has_failed(status: Any) -> bool:
    return str(status or "").upper() not in {"FINISHED", ""}


def _warehouse_of(compute: Any) -> str | None:
    """Return the id in ``compute``, which files have as an object or as its JSON."""
    if isinstance(compute, str):
        return _decode_warehouse(compute)
    if isinstance(compute, dict):
        warehouse, cluster = _find_names(tuple(compute))
        return read_text(compute.get(warehouse) or compute.get(cluster))
    return None


@lru_cache(1_000)
def _decode_warehouse(compute: str) -> str | None:
    try:
        decoded = json.loads(compute)
    except ValueError:
        return compute or None
    return None if isinstance(decoded, str) else _warehouse_of(decoded)


@lru_cache(1_000)
def _find_names(names: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Return how an object with these names calls the ids of the warehouse and of the cluster."""
    found = {name.lower(): name for name in names}
    return found.get("warehouse_id"), found.get("cluster_id")
