"""Who reads raw logs and asks queries. Contract: Authentication, 7: no audit row, no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from logs.models import LogRead, QueryRun
from tenantadmin.core.request_ids import current_request_id

if TYPE_CHECKING:
    from uuid import UUID


@dataclass(frozen=True, slots=True)
class Reader:
    """The caller, as the audit names it: the email, and the client's address."""

    email: str
    address: str


def record_read(reader: Reader, *, tenant: UUID, key: str) -> None:
    """Write the audit row of a read of ``key``, an object or a prefix. Call it before the data is read."""
    LogRead.objects.create(
        tenant_id=tenant,
        email=reader.email,
        key=key,
        request_id=current_request_id(),
        client_address=reader.address,
    )


def begin_query(reader: Reader, *, tenant: UUID, statement: str) -> int:
    """Write the audit row of a query that is about to run; return its id for `end_query`."""
    run = QueryRun.objects.create(
        tenant_id=tenant,
        email=reader.email,
        # PostgreSQL stores neither NUL characters nor lone surrogates: others replace them.
        statement=statement.replace("\0", "␀").encode(errors="replace").decode(),
        request_id=current_request_id(),
        client_address=reader.address,
    )
    return run.pk


def end_query(
    run: int, *, outcome: str, duration_ms: int, rows: int | None = None, nbytes: int | None = None
) -> None:
    """Complete the audit row of a query: ``ok`` with rows and bytes, or the error's code without them."""
    QueryRun.objects.filter(pk=run).update(outcome=outcome, duration_ms=duration_ms, rows=rows, bytes=nbytes)
