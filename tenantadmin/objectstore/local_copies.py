"""Files of a remote store beside a query engine that reads local files alone."""

from __future__ import annotations

import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tenantadmin.objectstore.local import LocalStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenantadmin.objectstore.interface import ObjectStore

_DOWNLOADS: Final = 8


class LocalCopies:
    """Copies of objects that never change under their key, in ``directory``, at most ``max_bytes`` of them.

    Shared between processes: a copy appears whole. The copies used longest ago go first; those named in
    the same call stay.
    """

    def __init__(self, directory: Path, *, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes

    def place(self, key: str) -> Path:
        """Where the copy of an object lies, or will."""
        return self._directory / key

    def paths(self, store: ObjectStore, keys: Sequence[str]) -> list[Path]:
        """A local file for each key, in order: the store's own where it is local.

        Raises:
            ObjectNotFound: there is no such object.
            StoreError: the store failed.
        """
        if isinstance(store, LocalStore):
            return [Path(store.uri(key)) for key in keys]
        wanted = {key: self.place(key) for key in keys}
        missing = [key for key, path in wanted.items() if not _touch(path)]
        if missing:
            self._make_room(keep=set(wanted.values()))
            with ThreadPoolExecutor(_DOWNLOADS) as pool:
                list(pool.map(lambda key: self._fetch(store, key, wanted[key]), missing))
        return list(wanted.values())

    def _fetch(self, store: ObjectStore, key: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as out:
            try:
                with store.open(key) as body:
                    shutil.copyfileobj(body, out, 1 << 20)
                out.close()
                Path(out.name).replace(target)
            except BaseException:
                Path(out.name).unlink(missing_ok=True)
                raise

    def _make_room(self, *, keep: set[Path]) -> None:
        held = [(path.stat(), path) for path in self._directory.rglob("*") if path.is_file()]
        held.sort(key=lambda item: item[0].st_mtime)
        excess = sum(status.st_size for status, _ in held) - self._max_bytes
        for status, path in held:
            if excess <= 0:
                return
            if path not in keep:
                path.unlink(missing_ok=True)
                excess -= status.st_size


def _touch(path: Path) -> bool:
    """Mark a copy as used now; whether there is one."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True
