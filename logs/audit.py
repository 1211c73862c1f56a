"""Who reads raw logs and asks queries. Contract: Authentication, 7: no audit row, no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from logs.models import LogRead, QueryRun
from tenantadmin.core.request_ids import current_request_id
from tenantadmin.database.prepared import PreparedQuery

if TYPE_CHECKING:
    from uuid import UUID


_RUNS: Final = QueryRun._meta.db_table
_BEGIN_QUERY: Final = PreparedQuery(
    f"INSERT INTO {_RUNS} (at, tenant_id, email, statement, request_id, client_address, outcome)"  # noqa: S608
    " VALUES (clock_timestamp(), %s, %s, %s, %s, %s, 'running') RETURNING id"
)
_END_QUERY: Final = PreparedQuery(
    f"UPDATE {_RUNS} SET outcome = %s, duration_ms = %s::bigint,"  # noqa: S608  # a name of ours
    " rows = nullif(%s, '')::bigint, bytes = nullif(%s, '')::bigint WHERE id = %s::bigint RETURNING id"
)


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
    row: Any = _BEGIN_QUERY.fetch_one(
        tenant,
        reader.email,
        # What PostgreSQL cannot store as text is shown by a stand-in.
        statement.replace("\0", "␀").encode(errors="replace").decode(),
        current_request_id(),
        reader.address,
    )
    return int(row[0])


def end_query(
    run: int, *, outcome: str, duration_ms: int, rows: int | None = None, nbytes: int | None = None
) -> None:
    """Complete the audit row of a query: ``ok`` with rows and bytes, or the error's code without."""
    numbers = ("" if number is None else number for number in (rows, nbytes))
    _END_QUERY.fetch_one(outcome, duration_ms, *numbers, run)
