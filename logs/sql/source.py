"""The files of a tenant's log as local paths, for DuckDB on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logs.sql.protocol import DayFiles, LogSource
from tenantadmin.lib.objectstore import LocalStore
from tenantadmin.lib.objectstore.storage import check_key

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import ObjectStore
    from tenantadmin.lib.objectstore.local_copies import LocalCopies


def make_source(
    store: ObjectStore,
    *,
    copies: LocalCopies,
    tenant: str,
    files: Sequence[tuple[str, str]],
    has_positions: bool = False,
    sizes: Sequence[int] = (),
    engine: str = "duckdb",
) -> LogSource:
    """Return the log of ``tenant``, whose files are at local paths.

    Query processes have no network. If the store is not local, they read copies of its files.

    Args:
        copies: fetches and keeps the copies.
        files: pairs of a day (``YYYY-MM-DD``) and an object key, oldest day first.
        has_positions, sizes, engine: see `LogSource`.

    Raises:
        InvalidKey: a key cannot be the key of an object.
        ValueError: a file is not of its day, or not of the tenant.
    """
    keys = [key for _, key in files]
    if isinstance(store, LocalStore):
        paths, fetch = list(store.uris(keys)), None
    else:
        paths = [str(copies.path(check_key(key))) for key in keys]
        key_of = dict(zip(paths, keys, strict=True))

        def fetch(paths: Sequence[str]) -> None:
            copies.paths(store, [key_of[path] for path in paths])

    paths_of: dict[str, list[str]] = {}
    for (day, _), path in zip(files, paths, strict=True):
        paths_of.setdefault(day, []).append(path)
    return LogSource(
        tenant_id=tenant,
        days=tuple(DayFiles(day, tuple(own)) for day, own in paths_of.items()),
        fetch=fetch,
        keys=tuple(keys),
        has_positions=has_positions,
        sizes=tuple(sizes),
        engine=engine,
    )
