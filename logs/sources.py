"""What a query over a tenant's ``proxy_logs`` reads: the current file of every day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings

from logs.models import Partition
from logs.sql.places import locate
from tenantadmin.database.prepared import PreparedQuery
from tenantadmin.objectstore.local_copies import LocalCopies

if TYPE_CHECKING:
    from uuid import UUID

    from logs.sql.protocol import LogSource
    from tenantadmin.objectstore import ObjectStore

#: By hand and in one text, since hundreds of rows are read for every query.
_FILES: Final = PreparedQuery(
    "SELECT string_agg(day::text || file, chr(10) ORDER BY day)"  # noqa: S608  # a name of ours
    f" FROM {Partition._meta.db_table} WHERE tenant_id = %s AND file <> ''"
)
_DAY_LENGTH: Final = len("2026-01-31")


def log_source(store: ObjectStore, *, tenant: UUID) -> LogSource:
    """Return the files of all days, oldest first, with which a query begins and ends."""
    row = _FILES.fetch_one(tenant)
    lines = str(row[0]).split("\n") if row and row[0] else []
    files = [(line[:_DAY_LENGTH], line[_DAY_LENGTH:]) for line in lines]
    return locate(store, copies=local_copies(), tenant=str(tenant), files=files)


def local_copies() -> LocalCopies:
    """The copies of a remote store's files that this machine keeps."""
    return LocalCopies(settings.VAR_DIR / "cache", max_bytes=settings.SQL_OPTIONS.cache_bytes)
