"""Run one SQL query over a tenant's log, with its audit row. Contract: "SQL over the log"."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from logs.audit import Reader, begin_query, end_query
from logs.cancelling import WATCH
from logs.kept_results import KeptResult
from logs.sources import log_source
from logs.sql.cancellation import Cancellation
from logs.sql.choosing import engine_from
from logs.sql.errors import EngineUnavailable
from logs.sql.local import LocalEngine
from logs.sql.remote import RemoteEngine
from logs.sql.results import json_rows
from tenantadmin.lib.core.errors import ApiError, InternalError, ServiceBusy
from tenantadmin.lib.core.metrics import count_query
from tenantadmin.lib.core.serving import Disconnection
from tenantadmin.lib.objectstore import ObjectNotFound

if TYPE_CHECKING:
    from uuid import UUID

    from logs.sql.protocol import Engine, Limits, LogSource, QueryResult
    from tenantadmin.lib.objectstore import ObjectStore


#: How often a query is tried while its days are being built again.
_ATTEMPTS: Final = 2

_engine_lock = threading.Lock()
_engine: Engine | None = None


def run_query(
    store: ObjectStore,
    *,
    tenant: UUID,
    statement: str,
    reader: Reader,
    source: LogSource | None = None,
    limits: Limits | None = None,
    disconnection: Disconnection | None = None,
    by_service: bool = False,
) -> QueryResult:
    """Run ``statement`` over the tenant's log, or return its kept result. Record in the audit how it ended.

    If a file is gone because its day was built again, the query reads the new files.

    Args:
        source: the files to read, for which no result is kept; default: the current partitions.
        limits: default: the settings.
        disconnection: ends the query when the caller is gone.
        by_service: the service wrote the statement, for figures that the reader asked for.

    Raises:
        ApiError: the statement was refused, failed or was cancelled (400), the engine failed (500), or days
            were built again in both attempts (503).
    """
    run = begin_query(reader, tenant=tenant, statement=statement, by_service=by_service)
    started = time.monotonic()
    outcome, message = InternalError.code, InternalError.message
    result: QueryResult | None = None
    limits = limits or query_limits()
    cancellation = Cancellation()
    disconnection = disconnection or Disconnection()
    try:
        with disconnection.calling(cancellation.cancel), WATCH.watching(run.pk, cancellation):
            if source is None:
                result = _query_current_files(
                    store,
                    log_source(store, tenant=tenant, state=run.state),
                    tenant=tenant,
                    statement=statement,
                    limits=limits,
                    cancellation=cancellation,
                )
            else:
                result = get_engine().execute(
                    source=source, statement=statement, limits=limits, cancellation=cancellation
                )
    except ApiError as error:
        outcome, message = error.code, error.text
        raise
    else:
        outcome, message = "ok", ""
    finally:
        seconds = time.monotonic() - started
        count_query(outcome=outcome, seconds=seconds)
        end_query(run, outcome=outcome, seconds=seconds, message=message, result=result)
    # Pages show the same as the audit.
    return replace(result, elapsed_ms=round(seconds * 1000))


def _query_current_files(
    store: ObjectStore,
    source: LogSource,
    *,
    tenant: UUID,
    statement: str,
    limits: Limits,
    cancellation: Cancellation,
) -> QueryResult:
    """Return the kept result or execute the query. If a build replaces the files, query the new ones."""
    kept = KeptResult(tenant=tenant, statement=statement, limits=limits)
    for _ in range(_ATTEMPTS):
        result = kept.find(source)
        if result is not None:
            return result
        try:
            result = get_engine().execute(
                source=source, statement=statement, limits=limits, cancellation=cancellation
            )
        except (EngineUnavailable, ObjectNotFound):
            before, source = source, log_source(store, tenant=tenant)
            if source.keys == before.keys:
                raise
        else:
            kept.keep(source, result)
            return result
    raise ServiceBusy("Days of the log are being built again. Try again in a moment.")


def query_rows(store: ObjectStore, *, tenant: UUID, statement: str, reader: Reader) -> list[dict[str, Any]]:
    """Return the rows of a statement of the service as the API shows them, by column name.

    Raises:
        ApiError: the query failed.
    """
    return rows_of(run_query(store, tenant=tenant, statement=statement, reader=reader, by_service=True))


def rows_of(result: QueryResult) -> list[dict[str, Any]]:
    """Return the rows of a result as the API shows them, by column name."""
    rows: list[dict[str, Any]] = json.loads(b"[" + b"".join(json_rows(result)) + b"]")
    return rows


def get_engine() -> Engine:
    """Return the engine of this process, made from the settings on the first call.

    The engine starts its first query process with its first query.
    """
    global _engine  # noqa: PLW0603 - one pool of processes, or of connections, per service process
    with _engine_lock:
        if _engine is None:
            options = settings.SQL_OPTIONS
            if options.service_url:
                _engine = RemoteEngine(url=options.service_url, secret=options.service_secret)
            else:
                _engine = engine_from(options, LocalEngine.from_options(options))
        return _engine


def query_limits() -> Limits:
    """Return the limits of one query from the settings. Contract: Limits."""
    limits: Limits = settings.SQL_OPTIONS.limits
    return limits


def document_limits() -> Limits:
    """Return the limits of a query that the service runs to make or verify a document."""
    return replace(query_limits(), seconds=60.0, max_rows=1_000_000, max_bytes=256 << 20)
