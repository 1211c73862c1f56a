"""What a query over a tenant's ``proxy_logs`` reads: the current file of every day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import connection

from logs.models import Partition
from logs.sql.places import locate
from tenantadmin.objectstore.local_copies import LocalCopies

if TYPE_CHECKING:
    from uuid import UUID

    from logs.sql.protocol import LogSource
    from tenantadmin.objectstore import ObjectStore

#: By hand, since hundreds of rows are read for every query and nothing of a model is used.
_FILES: Final = (
    f"SELECT day::text, file FROM {Partition._meta.db_table}"  # noqa: S608  # a name of ours
    " WHERE tenant_id = %s AND file <> '' ORDER BY day"
)


def log_source(store: ObjectStore, *, tenant: UUID) -> LogSource:
    """Return the files of all days, oldest first, with which a query begins and ends."""
    with connection.cursor() as cursor:
        cursor.execute(_FILES, [tenant])
        files = cursor.fetchall()
    copies = LocalCopies(settings.VAR_DIR / "cache", max_bytes=settings.SQL_OPTIONS.cache_bytes)
    return locate(store, copies=copies, tenant=str(tenant), files=files)
