"""What a query over a tenant's ``proxy_logs`` reads: the current files of every day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import connection

from accounts.models.tenants import SqlEngine, TenantConfig
from logs.models import Partition
from logs.sql.source import make_source
from tenantadmin.objectstore.local_copies import LocalCopies

if TYPE_CHECKING:
    from uuid import UUID

    from logs.sql.protocol import LogSource
    from tenantadmin.objectstore import ObjectStore

#: Not through the ORM: every query reads this, and a tenant has hundreds of days.
_FILES: Final = (
    "SELECT day::text, key, bytes,"  # noqa: S608  # the tables' names are not input
    f" (SELECT sql_engine FROM {TenantConfig._meta.db_table} WHERE tenant_id = %(tenant)s)"
    " FROM (SELECT day, file AS key, 0 AS place, bytes"  # the table's name is not input
    f" FROM {Partition._meta.db_table} WHERE tenant_id = %(tenant)s AND file <> '' UNION ALL"
    f" SELECT day, more.key, more.place, bytes FROM {Partition._meta.db_table},"
    " jsonb_array_elements_text(more_files) WITH ORDINALITY AS more(key, place)"
    " WHERE tenant_id = %(tenant)s AND more_files <> '[]') AS files ORDER BY day, place"
)


def log_source(store: ObjectStore, *, tenant: UUID) -> LogSource:
    """Return the current files of all days, oldest first. A query reads these to its end."""
    with connection.cursor() as cursor:
        cursor.execute(_FILES, {"tenant": tenant})
        rows = cursor.fetchall()
    return make_source(
        store,
        copies=local_copies(),
        tenant=str(tenant),
        files=[(day, key) for day, key, *_ in rows],
        sizes=tuple({day: size for day, _, size, _ in rows}.values()),
        engine=rows[0][-1] or SqlEngine.DUCKDB if rows else SqlEngine.DUCKDB,
    )


def local_copies() -> LocalCopies:
    """The copies of a remote store's files that this machine keeps."""
    return LocalCopies(settings.VAR_DIR / "cache", max_bytes=settings.SQL_OPTIONS.cache_bytes)
