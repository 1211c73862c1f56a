"""Copy a tree of raw log files into the object store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.core.files.base import ContentFile

from logs.layout import logs_prefix, parse_raw_key
from tenantadmin.lib.objectstore import ObjectNotFound
from tenantadmin.lib.objectstore.storage import is_key

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import ObjectStore

_THREADS: Final = 16
_BATCH: Final = 1024
#: Maximum number of files that an error names.
_MAX_NAMED: Final = 5


class BadTree(Exception):
    """The directory is not a tree of raw logs; the message names the place and how to correct it."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file to import, and the key of the object that it becomes."""

    path: Path
    key: str


def find_log_files(directory: Path, *, tenant: UUID) -> list[LogFile]:
    """Return the files ``directory/logs/YYYY/MM/DD/HH/<file>.json``, in key order.

    Raises:
        BadTree: there is no such tree, it is empty, or a file is at another place, is not a plain file or
            has a name that is not UTF-8. Links are refused because members of the tenant could read
            whatever they point to.
    """
    root = directory / "logs"
    if root.is_symlink():
        raise BadTree(f"{root} is a symbolic link; give the parent of the folder that it points to.")
    if not root.is_dir():
        raise BadTree(f"{directory} contains no folder 'logs'; give the folder above logs/YYYY/MM/DD/HH/.")
    files: list[LogFile] = []
    misplaced: list[str] = []
    special: list[str] = []
    not_utf8: list[str] = []
    for path, is_file in _walk(root):
        key = logs_prefix(tenant) + path.relative_to(root).as_posix()
        if not is_file:
            special.append(str(path.relative_to(directory)))
        elif parse_raw_key(key) is None:
            misplaced.append(str(path.relative_to(directory)))
        elif not is_key(key):
            not_utf8.append(str(path.relative_to(directory)))
        else:
            files.append(LogFile(path, key))
    for bad, problem in (
        (special, "not plain files"),
        (misplaced, "not at logs/YYYY/MM/DD/HH/<file>.json"),
        (not_utf8, "names that are not UTF-8"),
    ):
        if bad:
            named = ", ".join(sorted(bad)[:_MAX_NAMED])
            more = f" and {len(bad) - _MAX_NAMED} more" if len(bad) > _MAX_NAMED else ""
            raise BadTree(
                f"{directory}: {problem}: {named}{more}. Move or remove them; nothing was imported."
            )
    if not files:
        raise BadTree(f"{root} contains no file; expected logs/YYYY/MM/DD/HH/<file>.json.")
    return sorted(files, key=lambda file: file.key)


def _walk(folder: Path) -> Iterator[tuple[Path, bool]]:
    """List the folder recursively as (path, is_file). Symbolic links are not followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path))
            else:
                yield Path(entry.path), entry.is_file(follow_symlinks=False)


def import_files(store: ObjectStore, files: list[LogFile]) -> Iterator[bool]:
    """Copy files into the store. For each file, in order, yield True if it was written.

    An object that already has the same bytes is not written again, so its day stays current.

    Raises:
        OSError: a file cannot be read.
        StoreError: the store failed.
    """
    remaining = iter(files)
    with ThreadPoolExecutor(_THREADS) as pool:
        while batch := list(islice(remaining, _BATCH)):
            yield from pool.map(lambda file: _import_file(store, file), batch)


def _import_file(store: ObjectStore, file: LogFile) -> bool:
    with open(file.path, "rb", opener=_open_unless_link) as stream:
        body = stream.read()
    try:
        with store.open(file.key) as stored:
            if stored.size == len(body) and stored.read() == body:
                return False
    except ObjectNotFound:
        pass
    store.save(file.key, ContentFile(body))
    return True


def _open_unless_link(path: str, flags: int) -> int:
    # The file may have been replaced by a link since it was listed.
    return os.open(path, flags | os.O_NOFOLLOW)
