"""Local copies of remote objects, for a query engine that reads only local files."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tenantadmin.lib.core.metrics import count_full_disk
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore.local import LocalStore
from tenantadmin.lib.objectstore.storage import ObjectNotFound, StoreError

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore.storage import ObjectStore

logger = logging.getLogger(__name__)

_PARALLEL_DOWNLOADS: Final = 8
#: How often a body that the store cuts off is downloaded.
_DOWNLOAD_ATTEMPTS: Final = 3
#: A copy is kept for this many seconds after its last use. Queries open their files within a minute; builds
#: and replays, which take longer, open them again and again.
_IN_USE_SECONDS: Final = 1800
#: The same if the disk is full: longer than a query takes, which opens its files within its time.
_IN_USE_ON_FULL_DISK_SECONDS: Final = 30
#: A download that has written nothing for this many seconds has died.
_ABANDONED_SECONDS: Final = 3600
#: Names of unfinished copies start with this.
_UNFINISHED_PREFIX: Final = "."
#: The disk is full, or the user's share of it.
_FULL: Final = {errno.ENOSPC, errno.EDQUOT}


class LocalCopies:
    """A cache of objects in ``directory``. The content of an object must never change under its key.

    Processes may share the directory: a copy appears only when it is complete. When the copies have more than
    ``max_bytes``, the least recently used are removed. Copies used within the last half hour stay.
    If the disk is full before that, half of them are removed, then half of the rest, until there is room.
    Then those stay that were used within the last half minute.

    Attributes:
        full_at: when this object last found the disk full; None if it never did.
    """

    def __init__(self, directory: Path, *, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self.full_at: datetime | None = None

    def path(self, key: str) -> Path:
        """Return the path of an object's copy, which need not exist."""
        return self._directory / key

    def paths(self, store: ObjectStore, keys: Sequence[str]) -> list[Path]:
        """Return a local file for each key, in order. Downloads what is missing.

        If the store is local, these are its own files.

        Raises:
            ObjectNotFound: there is no such object.
            StoreError: the store failed, or the disk is full and every copy on it is in use.
        """
        if isinstance(store, LocalStore):
            return [Path(store.uri(key)) for key in keys]
        wanted = {key: self.path(key) for key in keys}
        # A download may take so long that another process removes copies that were marked before it.
        while missing := self._mark_used(wanted):
            self._remove_excess(self._max_bytes, in_use_seconds=_IN_USE_SECONDS)
            with ThreadPoolExecutor(_PARALLEL_DOWNLOADS) as pool:
                list(pool.map(lambda key: self._fetch(store, key, wanted[key]), missing))
        return [wanted[key] for key in keys]

    def _mark_used(self, wanted: Mapping[str, Path]) -> list[str]:
        """Mark copies as used now. Return the keys that have no copy."""
        with self._locked(fcntl.LOCK_SH):
            return [key for key, path in wanted.items() if not _touch(path)]

    def _fetch(self, store: ObjectStore, key: str, target: Path) -> None:
        attempt = 1
        while True:
            try:
                return self._download(store, key, target)
            except StoreError as error:
                if isinstance(error, ObjectNotFound) or attempt == _DOWNLOAD_ATTEMPTS:
                    raise
                attempt += 1
                logger.info("Downloading %s again: %s", key, error)
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                self._make_room(key)

    def _make_room(self, key: str) -> None:
        """Remove half of the copies, because the disk is full."""
        self.full_at = now()
        count_full_disk()
        size = sum(size for _, size, _ in self._copies())
        removed = self._remove_excess(size // 2, in_use_seconds=_IN_USE_ON_FULL_DISK_SECONDS)
        logger.warning("The disk of %s is full. %d bytes of copies were removed.", self._directory, removed)
        if not removed:
            raise StoreError(
                f"cannot copy {key!r}: the disk of {self._directory} is full, and every copy on it is in use"
            )

    def _download(self, store: ObjectStore, key: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=_UNFINISHED_PREFIX, delete=False) as out:
            try:
                with store.open(key) as body:
                    shutil.copyfileobj(body, out, 1 << 20)
                out.flush()
                # A crash of the machine leaves no empty file under the name of a copy.
                os.fsync(out.fileno())
                out.close()
                Path(out.name).replace(target)
            except BaseException:
                Path(out.name).unlink(missing_ok=True)
                raise

    def _copies(self) -> list[tuple[float, int, Path]]:
        """Return the last use, size in bytes and path of every copy, the least recently used first."""
        found = ((path, _status(path)) for path in self._directory.rglob("*"))
        return sorted((status.st_mtime, status.st_size, path) for path, status in found if status)

    def _remove_excess(self, max_bytes: int, *, in_use_seconds: int) -> int:
        """Remove copies above ``max_bytes`` that are not in use, and unfinished copies of dead processes.

        Return how many bytes were removed.
        """
        copies = self._copies()
        excess = sum(size for _, size, _ in copies) - max_bytes
        removed = 0
        started = time.time()
        # Under this lock, no process marks a copy as used between the check and its removal.
        with self._locked(fcntl.LOCK_EX):
            for _, size, path in copies:
                is_unfinished = path.name.startswith(_UNFINISHED_PREFIX)
                if removed >= excess and not is_unfinished:
                    continue
                status = _status(path)
                min_age = _ABANDONED_SECONDS if is_unfinished else in_use_seconds
                if status is None or status.st_mtime < started - min_age:
                    path.unlink(missing_ok=True)
                    removed += size
        return removed

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        self._directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file, or None if the path is not a file or no longer exists."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _touch(path: Path) -> bool:
    """Mark a copy as used now. Return False if there is none."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True
