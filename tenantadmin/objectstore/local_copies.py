"""Files of a remote store beside a query engine that reads local files alone."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tenantadmin.objectstore.local import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tenantadmin.objectstore.storage import ObjectStore

_DOWNLOADS: Final = 8
#: Seconds since its last use for which a copy stays: whoever was given its path opens it within them.
_IN_USE: Final = 120
#: Seconds since the last byte after which a download has ended, whatever its outcome.
_ABANDONED: Final = 3600
#: What the names of unfinished copies begin with.
_UNFINISHED: Final = "."


class LocalCopies:
    """Copies of objects that never change under their key, in ``directory``, at most ``max_bytes`` of them.

    Shared between processes: a copy appears whole. The copies used longest ago go first; those used within
    the last two minutes stay, even where they are more.
    """

    def __init__(self, directory: Path, *, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes

    def place(self, key: str) -> Path:
        """Where the copy of an object lies, or will."""
        return self._directory / key

    def paths(self, store: ObjectStore, keys: Sequence[str]) -> list[Path]:
        """A local file for each key, in order: the store's own where it is local. To be opened at once.

        Raises:
            ObjectNotFound: there is no such object.
            StoreError: the store failed.
        """
        if isinstance(store, LocalStore):
            return [Path(store.uri(key)) for key in keys]
        wanted = {key: self.place(key) for key in keys}
        # Fetching may take so long that copies marked before it are due.
        while missing := self._mark_used(wanted):
            self._make_room()
            with ThreadPoolExecutor(_DOWNLOADS) as pool:
                list(pool.map(lambda key: self._fetch(store, key, wanted[key]), missing))
        return list(wanted.values())

    def _mark_used(self, wanted: Mapping[str, Path]) -> list[str]:
        """Mark copies as used now; returns those that are not there."""
        with self._locked(fcntl.LOCK_SH):
            return [key for key, path in wanted.items() if not _touch(path)]

    def _fetch(self, store: ObjectStore, key: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=_UNFINISHED, delete=False) as out:
            try:
                with store.open(key) as body:
                    shutil.copyfileobj(body, out, 1 << 20)
                out.close()
                Path(out.name).replace(target)
            except BaseException:
                Path(out.name).unlink(missing_ok=True)
                raise

    def _make_room(self) -> None:
        """Remove what is too much and not in use, and what processes that died left unfinished."""
        found = ((path, _status(path)) for path in self._directory.rglob("*"))
        held = sorted((status.st_mtime, status.st_size, path) for path, status in found if status)
        excess = sum(size for _, size, _ in held) - self._max_bytes
        now = time.time()
        # Nobody marks a copy as used between the look at it and its removal.
        with self._locked(fcntl.LOCK_EX):
            for _, size, path in held:
                is_unfinished = path.name.startswith(_UNFINISHED)
                if excess <= 0 and not is_unfinished:
                    continue
                status = _status(path)
                if status is None or status.st_mtime < now - (_ABANDONED if is_unfinished else _IN_USE):
                    path.unlink(missing_ok=True)
                    excess -= size

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
    """Of a file; None of what is none, or has gone since it was listed."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _touch(path: Path) -> bool:
    """Mark a copy as used now; whether there is one."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True
