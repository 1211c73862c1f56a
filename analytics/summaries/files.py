"""Local working directories of builds, and the objects that builds write to the store.

Each build writes its objects under its own name. A row in the database names the current ones.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb

from logs.models import SupersededFile
from tenantadmin.lib.objectstore import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from uuid import UUID

    from tenantadmin.lib.objectstore import ObjectStore


_SCRATCH_PREFIX: Final = "tenantadmin-work-"
#: A directory younger than this, in seconds, may not be locked yet.
_MIN_AGE_SECONDS: Final = 600


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Make a working directory, and remove it at the end.

    If the process is killed, the next call in any process removes the directory.

    Raises:
        StoreError: the disk failed, or DuckDB could not read the store. A retry may help.
    """
    try:
        _remove_abandoned()
        with tempfile.TemporaryDirectory(prefix=_SCRATCH_PREFIX) as directory, _locked(directory):
            yield Path(directory)
    except (OSError, duckdb.IOException) as error:
        raise StoreError(f"cannot build: {error}") from error


@contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Lock ``directory``. The lock ends with the process.

    Raises:
        BlockingIOError: another process holds it.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned() -> None:
    """Remove the working directories of killed processes."""
    for path in Path(tempfile.gettempdir()).glob(f"{_SCRATCH_PREFIX}*"):
        # It may be in use, belong to another user, or have just been removed.
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _MIN_AGE_SECONDS:
                with _locked(str(path)):
                    shutil.rmtree(path, ignore_errors=True)


def merged_prefix(tenant: UUID, period: str) -> str:
    """Return the prefix of the merged rollups and documents of a month, a year or the history."""
    return f"{tenant}/rollups/period={period}/"


def upload(store: ObjectStore, files: Mapping[str, Path]) -> None:
    """Store each local file under its key."""
    for key, path in files.items():
        with path.open("rb") as stream:
            store.save(key, stream)


def remove_orphans(store: ObjectStore, *, prefix: str, used: Collection[str]) -> None:
    """Delete objects below ``prefix`` that killed builds left. The caller holds the lock of the period.

    Args:
        used: the keys that rows refer to.
    """
    for entry in list(store.list(prefix)):
        if entry.key not in used and not SupersededFile.objects.filter(key=entry.key).exists():
            store.delete(entry.key)
