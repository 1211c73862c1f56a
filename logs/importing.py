"""Copies a tree of raw log files into the object store."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from logs.layout import logs_prefix, parse_raw_key
from tenantadmin.objectstore import ObjectNotFound
from tenantadmin.objectstore.interface import is_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from tenantadmin.objectstore import ObjectStore

_PARALLEL: Final = 16
_WINDOW: Final = 1024
#: Offending files named in an error, at most.
_NAMED: Final = 5


class BadTree(Exception):
    """The directory is no tree of raw logs; the message names the place and the cure."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file to import, and the key it goes to."""

    path: Path
    key: str


def find_log_files(directory: Path, *, tenant: UUID) -> list[LogFile]:
    """The files of the tree ``directory/logs/YYYY/MM/DD/HH/<file>.json``, in key order.

    Raises:
        BadTree: there is no such tree, it is empty, a file lies at another place, has a name that is no
            object's, or is none: a link would show the tenant's members whatever it leads to.
    """
    root = directory / "logs"
    if root.is_symlink():
        raise BadTree(f"{root} is a symbolic link; give the folder above the one that it leads to.")
    if not root.is_dir():
        raise BadTree(f"{directory} holds no folder 'logs'; give the folder above logs/YYYY/MM/DD/HH/.")
    files: list[LogFile] = []
    misplaced: list[str] = []
    special: list[str] = []
    unnamable: list[str] = []
    for path, is_file in _walk(root):
        key = logs_prefix(tenant) + path.relative_to(root).as_posix()
        if not is_file:
            special.append(str(path.relative_to(directory)))
        elif parse_raw_key(key) is None:
            misplaced.append(str(path.relative_to(directory)))
        elif not is_key(key):
            unnamable.append(str(path.relative_to(directory)))
        else:
            files.append(LogFile(path, key))
    for bad, fault in (
        (special, "no plain files"),
        (misplaced, "not at logs/YYYY/MM/DD/HH/<file>.json"),
        (unnamable, "names that are not UTF-8"),
    ):
        if bad:
            named = ", ".join(sorted(bad)[:_NAMED])
            more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
            raise BadTree(f"{directory}: {fault}: {named}{more}. Move or remove them; nothing was imported.")
    if not files:
        raise BadTree(f"{root} holds no file; expected logs/YYYY/MM/DD/HH/<file>.json.")
    return sorted(files, key=lambda file: file.key)


def _walk(folder: Path) -> Iterator[tuple[Path, bool]]:
    """What lies in the folders below ``folder``, and whether it is a file itself; no link is followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path))
            else:
                yield Path(entry.path), entry.is_file(follow_symlinks=False)


def import_files(store: ObjectStore, files: list[LogFile]) -> Iterator[bool]:
    """Copy files into the store; yields for each, in order, whether it had to be written.

    An object that is there already with the same bytes is left alone, so its day stays current.

    Raises:
        OSError: a file cannot be read.
        StoreError: the store failed.
    """
    waiting = iter(files)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        while window := list(islice(waiting, _WINDOW)):
            yield from pool.map(lambda file: _import_file(store, file), window)


def _import_file(store: ObjectStore, file: LogFile) -> bool:
    with open(file.path, "rb", opener=_open_plain) as opened:
        body = opened.read()
    try:
        if store.stat(file.key).size == len(body) and store.read(file.key) == body:
            return False
    except ObjectNotFound:
        pass
    store.write(file.key, body)
    return True


def _open_plain(path: str, flags: int) -> int:
    # What was a file when it was found may be a link by now.
    return os.open(path, flags | os.O_NOFOLLOW)
