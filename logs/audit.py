"""The audit of raw-log reads and SQL queries: no audit row, no data. Contract: Authentication, 7."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from logs.models import LogRead, QueryRun
from tenantadmin.core.request_context import current_request_id

if TYPE_CHECKING:
    from uuid import UUID

    from logs.sql.protocol import QueryResult


@dataclass(frozen=True, slots=True)
class Reader:
    """The email and the client address of a caller, for the audit."""

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
    # With the time, PostgreSQL looks into one partition.
    QueryRun.objects.filter(pk=run.pk, at=run.at).update(
        outcome=outcome,
        duration_ms=round(seconds * 1000),
        message=_storable(message),
        rows=result and result.row_count,
        bytes=result and result.nbytes,
        from_kept_result=result is not None and result.is_kept,
        engine=result.engine if result else "",
    )


def _storable(text: str) -> str:
    """Return ``text`` without NUL characters and lone surrogates, which PostgreSQL does not store."""
    return text.replace("\0", "␀").encode(errors="replace").decode()
