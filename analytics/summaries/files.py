"""The objects that builds write: under their own name, swapped by a row, deleted when no row names them."""

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
from tenantadmin.objectstore import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from uuid import UUID

    from tenantadmin.objectstore import ObjectStore


_SCRATCH: Final = "tenantadmin-work-"
#: Younger than this, in seconds, a directory may have been made and not be locked yet.
_YOUNG: Final = 600


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory for what is under construction; it goes at the end, or where its process is killed with the
    next one.

    Raises:
        StoreError: the disk failed, or the engine could not read the store: worth another try.
    """
    try:
        _remove_abandoned()
        with tempfile.TemporaryDirectory(prefix=_SCRATCH) as directory, _locked(directory):
            yield Path(directory)
    except (OSError, duckdb.IOException) as error:
        raise StoreError(f"cannot build: {error}") from error


@contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Hold a lock on ``directory`` that a dead process does not.

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
    """Remove the directories of builds that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        # In use, or not ours, or just removed.
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _YOUNG:
                with _locked(str(path)):
                    shutil.rmtree(path, ignore_errors=True)


def merged_prefix(tenant: UUID, period: str) -> str:
    """The prefix above the merged rollups of a month or a year."""
    return f"{tenant}/rollups/period={period}/"


def upload(store: ObjectStore, files: Mapping[str, Path]) -> None:
    """Store each local file under its key."""
    for key, path in files.items():
        with path.open("rb") as stream:
            store.write(key, stream)


def remove_orphans(store: ObjectStore, *, prefix: str, used: Collection[str]) -> None:
    """Delete objects below ``prefix`` of builds that were killed before they published.

    Args:
        used: the keys that rows name. The caller holds the lock of the period.
    """
    for entry in list(store.list(prefix)):
        if entry.key not in used and not SupersededFile.objects.filter(key=entry.key).exists():
            store.delete(entry.key)
