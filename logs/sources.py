"""Find the files that a query over a tenant's ``proxy_logs`` reads: the current files of every day."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from cachetools import LRUCache
from django.conf import settings
from django.db import connection

from accounts.models.tenants import SqlEngine, TenantConfig
from logs.models import Partition
from logs.sql.source import make_source
from tenantadmin.lib.objectstore.local_copies import LocalCopies

if TYPE_CHECKING:
    from logs.sql.protocol import LogSource
    from tenantadmin.lib.objectstore import ObjectStore

    #: What `_STATE` returns: the digest and the name of the engine.
    LogState = tuple[str | None, str | None]

# Plain SQL is faster: every query runs these statements, and a tenant has hundreds of days.
#: The digest changes with each build, because a build gives its files new names.
_STATE: Final = (
    "SELECT md5(string_agg(file || more_files::text, ',' ORDER BY day)) AS digest,"  # noqa: S608  # the tables' names are not input
    f" (SELECT sql_engine FROM {TenantConfig._meta.db_table} WHERE tenant_id = %(tenant)s) AS engine"
    f" FROM {Partition._meta.db_table} WHERE tenant_id = %(tenant)s"
)
_FILES: Final = (
    "SELECT day::text, key, bytes"  # noqa: S608  # the table's name is not input
    f" FROM (SELECT day, file AS key, 0 AS place, bytes FROM {Partition._meta.db_table}"
    " WHERE tenant_id = %(tenant)s AND file <> '' UNION ALL"
    f" SELECT day, more.key, more.place, bytes FROM {Partition._meta.db_table},"
    " jsonb_array_elements_text(more_files) WITH ORDINALITY AS more(key, place)"
    " WHERE tenant_id = %(tenant)s AND more_files <> '[]') AS files ORDER BY day, place"
)

#: How many days a process remembers in all sources, about 1 KB each.
_REMEMBERED_DAYS: Final = 20_000

_sources: LRUCache[tuple[ObjectStore, UUID], tuple[LogState, LogSource]] = LRUCache(
    _REMEMBERED_DAYS, getsizeof=lambda entry: len(entry[1].days) + 1
)
_sources_lock: Final = threading.Lock()


def log_source(store: ObjectStore, *, tenant: UUID) -> LogSource:
    """Return the current files of all days, oldest first. They stay readable while a query runs."""
    with connection.cursor() as cursor:
        cursor.execute(_STATE, {"tenant": tenant})
        state = cursor.fetchone()
        with _sources_lock:
            remembered, source = _sources.get((store, tenant), (None, None))
        if source is not None and remembered == state:
            return source
        cursor.execute(_FILES, {"tenant": tenant})
        rows = cursor.fetchall()
    source = make_source(
        store,
        copies=local_copies(),
        tenant=str(tenant),
        files=[(day, key) for day, key, _ in rows],
        sizes=tuple({day: size for day, _, size in rows}.values()),
        engine=(rows and state[1]) or SqlEngine.DUCKDB,
    )
    if len(source.days) < _REMEMBERED_DAYS:
        with _sources_lock:
            _sources[store, tenant] = state, source
    return source


def local_paths(store: ObjectStore, keys: Iterable[str]) -> list[str]:
    """Return a path for each object, which DuckDB can read. Objects of a remote store are copied first.

    Raises:
        StoreError: the store failed, it has no such object, or the disk for copies is full.
    """
    return list(map(str, local_copies().paths(store, list(keys))))


def local_path(store: ObjectStore, key: str) -> str:
    """Return the path of one object, as `local_paths`."""
    return local_paths(store, [key])[0]


def local_copies() -> LocalCopies:
    """Return this machine's copies of a remote store's files."""
    return LocalCopies(settings.VAR_DIR / "cache", max_bytes=settings.SQL_OPTIONS.cache_bytes)
