"""The audit of raw-log reads and SQL queries: no audit row, no data. Contract: Authentication, 7."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import connection

from logs.models import LogRead, QueryRun
from tenantadmin.lib.core.request_context import current_request_id

if TYPE_CHECKING:
    from uuid import UUID

    from logs.sql.protocol import QueryResult

#: The commit does not wait for the disk. If the database crashes, the row remains but may lack how the query
#: ended. The condition on ``at`` lets PostgreSQL look into one partition only.
_END_QUERY: Final = """
    WITH commits AS (SELECT set_config('synchronous_commit', 'off', true))
  UPDATE logs_queryrun
     SET outcome = %s, duration_ms = %s::bigint, message = %s, rows = %s::bigint, bytes = %s::bigint,
         from_kept_result = %s::boolean, engine = %s
    FROM commits
   WHERE id = %s::bigint AND at = %s::timestamptz
"""


@dataclass(frozen=True, slots=True)
class Reader:
    """A caller in the audit: email and client address."""

    email: str
    address: str


def record_read(reader: Reader, *, tenant: UUID, key: str) -> None:
    """Write the audit row for a read of ``key``, an object or a prefix. Call this before reading the data."""
    LogRead.objects.create(
        tenant_id=tenant,
        email=reader.email,
        key=key,
        request_id=current_request_id(),
        client_address=reader.address,
    )


def begin_query(reader: Reader, *, tenant: UUID, statement: str) -> QueryRun:
    """Write and return the audit row of a query that is about to run."""
    return QueryRun.objects.create(
        tenant_id=tenant,
        email=reader.email,
        statement=_storable(statement),
        request_id=current_request_id(),
        client_address=reader.address,
    )


def end_query(
    run: QueryRun,
    *,
    outcome: str,
    seconds: float,
    message: str = "",
    result: QueryResult | None = None,
) -> None:
    """Complete the audit row of a query: ``ok`` with its result, or the error's code and message."""
    made = (
        (result.row_count, result.nbytes, result.is_kept, result.engine)
        if result
        else (None, None, False, "")
    )
    values = [outcome, round(seconds * 1000), _storable(message), *made, run.pk, run.at]
    with connection.cursor() as cursor:
        cursor.execute(_END_QUERY, values)


def _storable(text: str) -> str:
    """Return ``text`` without NUL characters and lone surrogates, which PostgreSQL does not store."""
    return text.replace("\0", "␀").encode(errors="replace").decode()
