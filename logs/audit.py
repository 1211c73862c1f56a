"""The audit of raw-log reads and SQL queries: no audit row, no data. Contract: Authentication, 7."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import connection

from accounts.limits import Quota, use_quota
from logs.models import LogRead, QueryRun
from logs.sql.guard import MAX_STATEMENT_BYTES
from tenantadmin.lib.core.errors import RateLimited
from tenantadmin.lib.core.request_context import current_address, current_request_id
from tenantadmin.lib.database.months import ensure_month

if TYPE_CHECKING:
    from logs.sql.protocol import QueryResult

_FIELDS: Final = [field.attname for field in QueryRun._meta.concrete_fields if not field.primary_key]
_INSERT: Final = (
    f"INSERT INTO {QueryRun._meta.db_table} ({', '.join(_FIELDS)})"  # noqa: S608  # the names are not input
    f" VALUES ({', '.join(['%s'] * len(_FIELDS))})"
)


@dataclass(frozen=True, slots=True)
class Reader:
    """A caller in the audit: email, client address, and what a program of PostgreSQL's port calls itself."""

    email: str
    address: str
    program: str = ""

    @classmethod
    def of_request(cls, email: str) -> Reader:
        """Return the caller of the current request."""
        return cls(email, current_address())


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


class QueryAudit:
    """The audit row of one query. It is written once, when the query has ended and before its rows are sent.

    A query that runs longer than a second gets its row while it runs: see `logs.cancelling`. A query whose
    process is killed before that has no row, and its result was not sent.
    """

    def __init__(self, reader: Reader, *, tenant: UUID, statement: str, by_service: bool = False) -> None:
        """Count the row of a query that is about to run, ``by_service`` if the service wrote it.

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
        self._lock = Lock()
        self._run = QueryRun(
            tenant_id=tenant,
            email=reader.email,
            statement=kept,
            request_id=current_request_id(),
            client_address=reader.address,
            by_service=by_service,
            program=reader.program,
        )

    def show_running(self) -> int | None:
        """Write the row of a query that still runs, unless there is one. Return its key; None if it ended."""
        with self._lock:
            if self._run._state.adding:
                self._run.save()
            return self._run.pk

    def end(
        self, *, outcome: str, seconds: float, message: str = "", result: QueryResult | None = None
    ) -> None:
        """Write how the query ended: ``ok`` with its result, or the error's code and message."""
        run = self._run
        with self._lock:
            run.outcome, run.duration_ms = outcome, round(seconds * 1000)
            run.message = shortened(storable(message), most=_MAX_MESSAGE_BYTES)
            if result:
                run.rows, run.bytes = result.row_count, result.nbytes
                run.from_kept_result, run.engine = result.is_kept, result.engine
            if run._state.adding:
                _insert(run)
            else:
                run.save()


def _insert(run: QueryRun) -> None:
    """Insert a row without the work of ``save``, which takes a tenth of a trivial query.

    The row gets no key here: nobody looks it up afterwards.
    """
    ensure_month(QueryRun._meta.db_table, run.at)
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [getattr(run, name) for name in _FIELDS])
    run._state.adding = False


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
