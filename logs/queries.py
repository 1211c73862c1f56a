"""One SQL query over a tenant's log, from audit row to result. Contract: "SQL over the log"."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from logs.audit import Reader, begin_query, end_query
from logs.sources import log_source
from logs.sql.engine import get_engine, get_limits
from tenantadmin.core.errors import ApiError, InternalError

if TYPE_CHECKING:
    from uuid import UUID

    from logs.sql.protocol import QueryResult
    from tenantadmin.objectstore import ObjectStore


def run_query(store: ObjectStore, *, tenant: UUID, statement: str, reader: Reader) -> QueryResult:
    """Run ``statement`` over the tenant's current partitions; the audit says how it ended.

    Raises:
        ApiError: the statement was refused or failed (400), or the engine did (500).
    """
    run = begin_query(reader, tenant=tenant, statement=statement)
    started = time.monotonic()
    outcome, rows, nbytes = InternalError.code, None, None
    try:
        source = log_source(store, tenant=tenant)
        result = get_engine().execute(source=source, statement=statement, limits=get_limits())
    except ApiError as error:
        outcome = error.code
        raise
    else:
        outcome, rows, nbytes = "ok", result.row_count, result.nbytes
        return result
    finally:
        duration_ms = round((time.monotonic() - started) * 1000)
        end_query(run, outcome=outcome, duration_ms=duration_ms, rows=rows, nbytes=nbytes)
