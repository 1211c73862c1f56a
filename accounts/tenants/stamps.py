"""Give changes of tenants and markers their time, so that a poller never misses one.

A change gets its time (its stamp) before it commits, so a later stamp may become visible before an
earlier one. Therefore every writer first takes a shared advisory lock whose key is the current time. The lock
says: this transaction may still commit a stamp at or after this time. PostgreSQL releases it when the
transaction ends. A reader reads the locks first and the rows second. No change with a stamp before the
smallest key can appear later (docs/decisions/0011-documents-and-history.md). Contract: Tenant manifest, Cache
metadata and markers.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection

from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

_NEVER: Final = Timestamp("1970-01-01T00:00:00.000Z")

#: The upper bits of the lock keys; the lower 44 bits are epoch milliseconds.
_NAMESPACE: Final = 0x5441

_ANNOUNCE: Final = f"""
    SELECT pg_advisory_xact_lock_shared(
        ({_NAMESPACE}::bigint << 44) | floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
    )
"""  # noqa: S608
# Later than every visible stamp, so that a poller sees the change even if the clock was set back.
_NEXT: Final = """
    greatest(
        date_trunc('milliseconds', clock_timestamp()),
        (SELECT max({column}) FROM {table}) + interval '1 millisecond'
    )
"""
_STAMP: Final = f"""
    UPDATE accounts_tenant SET modified_at = greatest(
        {_NEXT.format(column="modified_at", table="accounts_tenant")}, modified_at + interval '1 millisecond'
    )
    WHERE id = %s AND deleted_at IS NULL RETURNING modified_at
"""  # noqa: S608
# The start of this statement is earlier than its read of the locks. A writer that takes its lock after that
# read gets a later stamp.
_HORIZON: Final = f"""
    SELECT least(
        date_trunc('milliseconds', statement_timestamp()),
        (
            SELECT to_timestamp(min(announced.key & ((1::bigint << 44) - 1)) / 1000.0)
            FROM (
                SELECT (classid::bigint << 32) | objid::bigint AS key
                FROM pg_locks
                WHERE locktype = 'advisory' AND objsubid = 1 AND pid <> pg_backend_pid()
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            ) AS announced
            WHERE announced.key >> 44 = {_NAMESPACE}
        )
    )
"""  # noqa: S608


def new_stamp(model: type[Model], column: str) -> dt.datetime:
    """Announce a change and return the stamp for ``column`` of a new row, or of a row that is locked."""
    with connection.cursor() as cursor:
        cursor.execute(_ANNOUNCE)
        cursor.execute("SELECT " + _NEXT.format(column=column, table=model._meta.db_table))
        return _only_value(cursor.fetchone())


def stamp_tenant(tenant_id: UUID) -> dt.datetime | None:
    """Announce a change of a live tenant, update its ``modified_at`` and return it.

    Return None if there is no such live tenant. Locks the tenant's row until the transaction ends, so changes
    of one tenant happen one after the other.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ANNOUNCE)
        cursor.execute(_STAMP, [tenant_id])
        row = cursor.fetchone()
        return None if row is None else _only_value(row)


def settled_before() -> dt.datetime:
    """Return the time before which no open transaction can still add a change.

    Call it before reading the rows, in a statement of its own.
    """
    with connection.cursor() as cursor:
        cursor.execute(_HORIZON)
        return _only_value(cursor.fetchone())


def newest_settled(
    rows: QuerySet[Any], field: str, *, settled: dt.datetime, since: dt.datetime | None
) -> Timestamp:
    """Return the newest stamp of ``rows`` before ``settled``, as a timestamp: a safe ``since``."""
    stamps = rows.order_by(f"-{field}").values_list(field, flat=True)
    newest = stamps.first()
    if newest is not None and newest >= settled:
        newest = stamps.filter(**{f"{field}__lt": settled}).first()
        if since is not None and since < settled:
            # A change that is not settled yet may have replaced the stamp that equalled ``since``.
            newest = max(newest or since, since)
    return _NEVER if newest is None else format_timestamp(newest)


def _only_value(row: tuple[dt.datetime, ...] | None) -> dt.datetime:
    if row is None:
        raise RuntimeError("The database returned no row.")
    return row[0]
