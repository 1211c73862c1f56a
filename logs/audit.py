"""The audit of raw-log reads and SQL queries: no audit row, no data. Contract: Authentication, 7."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import connection

from accounts.limits import Quota, use_quota
from logs.models import LogRead, QueryRun
from logs.sources import STATE
from logs.sql.guard import MAX_STATEMENT_BYTES
from tenantadmin.lib.core.errors import RateLimited
from tenantadmin.lib.core.request_context import current_request_id
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.months import ensure_month

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from logs.sources import LogState
    from logs.sql.protocol import QueryResult

_TABLE: Final = QueryRun._meta.db_table
#: The row and the state of the files in one round trip, which takes 0.5 ms less than two.
_BEGIN_QUERY: Final = f"""
    WITH run AS (
        INSERT INTO {_TABLE}
               (tenant_id, email, statement, request_id, client_address, at, outcome, by_service, program)
        VALUES (%(tenant)s, %(email)s, %(statement)s, %(request)s, %(address)s, %(at)s, 'running',
                %(by_service)s, %(program)s)
        RETURNING id)
    SELECT run.id, files.* FROM run, ({STATE}) AS files
"""  # noqa: S608  # the tables' names are not input
#: The commit does not wait for the disk. If the database crashes, the row remains but may lack how the query
#: ended. The condition on ``at`` lets PostgreSQL look into one partition only.
_END_QUERY: Final = f"""
    WITH commits AS (SELECT set_config('synchronous_commit', 'off', true))
  UPDATE {_TABLE}
     SET outcome = %s, duration_ms = %s::bigint, message = %s, rows = %s::bigint, bytes = %s::bigint,
         from_kept_result = %s::boolean, engine = %s
    FROM commits
   WHERE id = %s::bigint AND at = %s::timestamptz
"""  # noqa: S608  # the table's name is not input


@dataclass(frozen=True, slots=True)
class Reader:
    """A caller in the audit: email, client address, and what a program of PostgreSQL's port calls itself."""

    email: str
    address: str
    program: str = ""


_MAX_MESSAGE_BYTES: Final = 4096
#: Bytes of a text that is too long, before its hash.
_OPENING_BYTES: Final = 1000
#: The key of a read of one request: this, and its id. Keys of objects begin with their tenant.
REQUEST_KEY: Final = "request "
#: The key of a read of a list of requests: this, and its days.
REQUESTS_KEY: Final = "requests "


def record_read(reader: Reader, *, tenant: UUID, key: str) -> None:
    """Write the audit row for a read of ``key``: an object, a prefix or requests. Call it before reading.

    Raises:
        RateLimited: the tenant's quota of the audit is used up.
    """
    use_quota(Quota.AUDIT, tenant, key)
    LogRead.objects.create(
        tenant_id=tenant,
        email=reader.email,
        key=key,
        request_id=current_request_id(),
        client_address=reader.address,
    )


@dataclass(frozen=True, slots=True)
class BegunQuery:
    """The key of a query's audit row, and the state of the log's files at that time."""

    pk: int
    at: datetime
    state: LogState


def begin_query(reader: Reader, *, tenant: UUID, statement: str, by_service: bool = False) -> BegunQuery:
    """Write the audit row of a query that is about to run, ``by_service`` if the service wrote it.

    Raises:
        RateLimited: the tenant's quota of the audit is used up. Then the service's own leave a hash.
    """
    kept = shortened(storable(statement), most=MAX_STATEMENT_BYTES)
    try:
        use_quota(Quota.FIGURES if by_service else Quota.AUDIT, tenant, kept)
    except RateLimited:
        if not by_service:
            raise
        kept = shortened(kept, most=0)
    at = now()
    values: dict[str, Any] = {
        "tenant": tenant,
        "email": reader.email,
        "statement": kept,
        "request": current_request_id(),
        "address": reader.address,
        "at": at,
        "by_service": by_service,
        "program": reader.program,
    }
    ensure_month(_TABLE, at)
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN_QUERY, values)
        pk, *state = cursor.fetchone()
    return BegunQuery(pk, at, tuple(state))


def end_query(
    run: BegunQuery,
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
    values = [
        outcome,
        round(seconds * 1000),
        shortened(storable(message), most=_MAX_MESSAGE_BYTES),
        *made,
        run.pk,
        run.at,
    ]
    with connection.cursor() as cursor:
        cursor.execute(_END_QUERY, values)


def shortened(text: str, *, most: int) -> str:
    """Return ``text``; above ``most`` bytes only how it begins, its length and its SHA-256."""
    content = text.encode()
    if len(content) <= most:
        return text
    opening = content[: min(most, _OPENING_BYTES)].decode(errors="ignore")
    return f"{opening}… ({len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()})"


def storable(text: str) -> str:
    """Return ``text`` without NUL characters and lone surrogates, which PostgreSQL does not store."""
    return text.replace("\0", "␀").encode(errors="replace").decode()
