"""The audit of raw-log reads and SQL queries: no audit row, no data. Contract: Authentication, 7."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from logs.models import LogRead, QueryRun
from tenantadmin.core.request_ids import current_request_id

if TYPE_CHECKING:
    from uuid import UUID


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


def begin_query(reader: Reader, *, tenant: UUID, statement: str) -> int:
    """Write the audit row of a query that is about to run, and return its id for `end_query`."""
    run = QueryRun.objects.create(
        tenant_id=tenant,
        email=reader.email,
        # PostgreSQL cannot store NUL characters and lone surrogates.
        statement=statement.replace("\0", "␀").encode(errors="replace").decode(),
        request_id=current_request_id(),
        client_address=reader.address,
    )
    return run.pk


def end_query(
    run: int, *, outcome: str, duration_ms: int, rows: int | None = None, nbytes: int | None = None
) -> None:
    """Complete the audit row of a query. ``outcome`` is ``ok`` or the error code."""
    QueryRun.objects.filter(pk=run).update(outcome=outcome, duration_ms=duration_ms, rows=rows, bytes=nbytes)
