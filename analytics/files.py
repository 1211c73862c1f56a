"""The objects that builds write: under their own name, swapped by a row, deleted when no row names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logs.models import SupersededFile

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path
    from uuid import UUID

    from tenantadmin.objectstore import ObjectStore


def merged_prefix(tenant: UUID, period: str) -> str:
    """The prefix above the merged rollups of a month or a year."""
    return f"{tenant}/rollups/period={period}/"


def upload(store: ObjectStore, files: Mapping[str, Path]) -> None:
    """Store each local file under its key."""
    for key, path in files.items():
        with path.open("rb") as stream:
            store.write(key, stream)


def remove_orphans(store: ObjectStore, *, prefix: str, named: Collection[str]) -> None:
    """Delete what builds that were killed before they published left below ``prefix``.

    Args:
        named: the keys that rows name. The caller holds the lock of the period.
    """
    for entry in list(store.list(prefix)):
        if entry.key not in named and not SupersededFile.objects.filter(key=entry.key).exists():
            store.delete(entry.key)
