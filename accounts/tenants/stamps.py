"""Give changes of tenants their ``modified_at``, so that a poller of the manifest never misses one.

A change gets its ``modified_at`` (its stamp) before it commits, so a later stamp may become visible before an
earlier one. Therefore every writer first takes a shared advisory lock whose key is the current time. The lock
says: this transaction may still commit a stamp at or after this time. PostgreSQL releases it when the
transaction ends. A reader reads the locks first and the rows second. No change with a stamp before the
smallest key can appear later (docs/decisions/0011-documents-and-history.md). Contract: Tenant manifest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import connection

if TYPE_CHECKING:
    import datetime as dt
    from uuid import UUID

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
        (SELECT max(modified_at) FROM accounts_tenant) + interval '1 millisecond'
    )
"""
_NEW_STAMP: Final = f"SELECT {_NEXT}"
_STAMP: Final = f"""
    UPDATE accounts_tenant SET modified_at = greatest({_NEXT}, modified_at + interval '1 millisecond')
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


def new_stamp() -> dt.datetime:
    """Announce a change and return the stamp for a new tenant."""
    with connection.cursor() as cursor:
        cursor.execute(_ANNOUNCE)
        cursor.execute(_NEW_STAMP)
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


def _only_value(row: tuple[dt.datetime, ...] | None) -> dt.datetime:
    if row is None:
        raise RuntimeError("The database returned no row.")
    return row[0]
