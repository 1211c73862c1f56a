"""The objects that builds write: under their own name, swapped by a row, deleted when no row names them."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from logs.models import SupersededFile
from tenantadmin.objectstore import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from uuid import UUID

    from tenantadmin.objectstore import ObjectStore


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory for what is under construction; it goes at the end.

    Raises:
        StoreError: the disk failed, or the engine could not read the store: worth another try.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="tenantadmin-") as directory:
            yield Path(directory)
    except (OSError, duckdb.IOException) as error:
        raise StoreError(f"cannot build: {error}") from error


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
