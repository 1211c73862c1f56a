"""Objects as files under one directory."""

from __future__ import annotations

import logging
import os
import stat
import time
import uuid
from bisect import bisect_left
from contextlib import suppress
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.core.files import File
from django.core.files.storage import FileSystemStorage

from tenantadmin.objectstore.batch import Entry, in_batches
from tenantadmin.objectstore.files import Run, read_run
from tenantadmin.objectstore.keys import InvalidKey, ObjectNotFound, StoreError, check_key, check_prefix
from tenantadmin.objectstore.reader import ReadAhead
from tenantadmin.objectstore.reader_program import FILE_FLAGS, etag_of
from tenantadmin.objectstore.storage import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import timedelta

    from tenantadmin.objectstore.batch import Batch
    from tenantadmin.objectstore.storage import Names

_log = logging.getLogger(__name__)

#: Files in one folder that are worth processes which read them, and what follows, ahead.
_WORTH_PROCESSES: Final = 1_000
#: Where files are written before they are renamed into place; never listed.
_STAGING: Final = ".staging"

#: Bytes of a file's name, at most.
_NAME_BYTES: Final = 255
#: Bytes that are written at a time.
_PIECE: Final = 1 << 20


class LocalStore(ObjectStore, FileSystemStorage):
    """An object store in the directory ``location``, which is made when the first object is written.

    `FileSystemStorage` writes into the file that others read, leaves half a file when the disk is full, syncs
    nothing and follows symbolic links. Here a file is written elsewhere, synced and renamed. Links below
    ``location`` are neither listed nor followed, so no key leads out of it.
    """

    def __init__(self, location: str | Path) -> None:
        super().__init__(os.path.realpath(location))
        self._root_text = str(self.location)
        self._root = Path(self._root_text)
        self._inside: str | None = None

    def path(self, name: str) -> str:
        """The absolute path of the object's file, whether there is one or not.

        Raises:
            ObjectNotFound: something else lies there: a folder, a symbolic link, a pipe.
            InvalidKey: the key names no object of this store.
        """
        path = self._place(name)
        try:
            is_file = stat.S_ISREG(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return path
        if not is_file:
            raise ObjectNotFound(name)
        return path

    def uri(self, key: str) -> str:
        with self.translated("read", key):
            return self.path(key)

    def uris(self, keys: Sequence[str]) -> Sequence[str]:
        """The `uri` of each key, in order. Folders that keys share are looked at once per call.

        Raises:
            InvalidKey: a key names no object of this store.
        """
        paths = []
        parents: set[str] = set()
        for key in keys:
            path = f"{self._root_text}/{_check_names(key)}"
            directory = path.rpartition("/")[0]
            parent = directory.rpartition("/")[0]
            if parent not in parents or os.path.islink(directory):  # noqa: PTH114  # hundreds per query
                self._check_inside(directory, key)
                if parent.startswith(f"{self._root_text}/"):
                    parents.add(parent)
            paths.append(path)
        return paths

    def list(self, prefix: str) -> Iterator[Entry]:
        base = self._directory(prefix)
        pending = [(base, check_prefix(prefix))] if base else []
        while pending:
            directory, at = pending.pop()
            for item in self._scan(directory):
                if item.is_dir(follow_symlinks=False):
                    pending.append((directory / item.name, f"{at}{item.name}/"))
                elif item.is_file(follow_symlinks=False):
                    try:
                        status = item.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # gone since the directory was read: as if it had never been listed
                    except OSError as error:
                        raise StoreError(f"cannot list {directory}: {error.strerror}") from error
                    yield Entry(at + item.name, status.st_size, etag_of(status))

    def listdir(self, path: str) -> Names:
        folders, objects = [], []
        base = self._directory(path)
        for item in self._scan(base) if base else ():
            if item.is_dir(follow_symlinks=False):
                if next(self.list(f"{path}{item.name}/"), None) is not None:
                    folders.append(item.name)
            elif item.is_file(follow_symlinks=False):
                objects.append(item.name)
        return folders, objects

    def read_many(self, objects: Iterable[Entry]) -> Iterator[Batch]:
        return self._read(self._runs(entry.key for entry in objects))

    def read_all(self, prefix: str, wanted: Callable[[str], object]) -> Iterator[Batch]:
        base = self._directory(prefix)
        return self._read(self._runs_below(base, prefix, wanted) if base else iter(()))

    def _runs(self, keys: Iterable[str]) -> Iterator[Run]:
        """Keys that follow each other in one folder, as a run each."""
        for at, own in groupby(keys, key=_folder_of):
            names = [_check_names(key)[len(at) :] for key in own]
            yield Run(self._place(at + names[0])[: -len(names[0]) - 1], at, names)

    def _runs_below(self, directory: Path, at: str, wanted: Callable[[str], object]) -> Iterator[Run]:
        files: list[str] = []
        folders: list[str] = []
        for item in self._scan(directory):
            if item.is_file(follow_symlinks=False):
                files.append(item.name)
            elif item.is_dir(follow_symlinks=False):
                # With its slash a folder's name sorts as the keys below it do.
                folders.append(f"{item.name}/")
        files = sorted(name for name in files if wanted(at + name))
        start = 0
        for folder in sorted(folders):
            end = bisect_left(files, folder, lo=start)
            if start < end:
                yield Run(str(directory), at, files[start:end])
            yield from self._runs_below(directory / folder[:-1], at + folder, wanted)
            start = end
        if start < len(files):
            yield Run(str(directory), at, files[start:])

    def _read(self, runs: Iterator[Run]) -> Iterator[Batch]:
        """The files of runs that are there."""
        try:
            for run in runs:
                if len(run.names) >= _WORTH_PROCESSES:
                    yield from _read_ahead(chain([run], runs))
                else:
                    yield from in_batches(read_run(run))
        except OSError as error:
            what = repr(error.filename.removeprefix(f"{self._root_text}/")) if error.filename else "objects"
            raise StoreError(f"cannot read {what}: {error.strerror}") from error

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        # Opened by descriptor, so that `File.size` is that of this file, whatever has replaced it since.
        return File(os.fdopen(os.open(self.path(name), FILE_FLAGS), mode), name)

    def _save(self, name: str, content: File[bytes]) -> str:
        path = Path(self._place(name))
        staging = self._root / _STAGING
        temporary = staging / uuid.uuid4().hex
        try:
            staging.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as stream:
                for piece in content.chunks(_PIECE):
                    stream.write(piece)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
            _sync_directory(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
        return name

    def remove_unfinished(self, *, age: timedelta) -> int:
        # A write that goes on changes its file's time.
        before = time.time() - age.total_seconds()
        removed = 0
        try:
            for path in (self._root / _STAGING).glob("*"):
                with suppress(FileNotFoundError):  # its write has just ended
                    if path.stat().st_mtime <= before:
                        path.unlink()
                        removed += 1
        except OSError as error:
            raise StoreError(f"cannot remove unfinished writes: {error.strerror}") from error
        return removed

    def _place(self, key: str) -> str:
        path = f"{self._root_text}/{_check_names(key)}"
        self._check_inside(path.rpartition("/")[0], key)
        return path

    def _directory(self, prefix: str) -> Path | None:
        if check_prefix(prefix):
            _check_names(prefix[:-1])
        directory = self._root / prefix
        if os.path.realpath(directory) != str(directory):
            return None  # a symbolic link on the way: not listed
        self._check_inside(str(directory), prefix)
        return directory if directory.is_dir() else None

    def _check_inside(self, directory: str, key: str) -> None:
        # Keys come sorted, many to a directory: the last answer is the one worth keeping.
        if directory == self._inside:
            return
        if os.path.realpath(directory) != directory or key.split("/", 1)[0] == _STAGING:
            raise InvalidKey(f"object key {key!r} leads out of the store")
        if os.path.isdir(directory):  # noqa: PTH112  # text all the way: this is a hot path
            self._inside = directory

    def _scan(self, directory: Path) -> Iterator[os.DirEntry[str]]:
        """What lies in a directory. Its path is walked to once, not for each `stat` of what is in it."""
        hidden = _STAGING if directory == self._root else None
        try:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"cannot list {directory}: {error.strerror}") from error
        try:
            with os.scandir(descriptor) as items:
                for item in items:
                    if item.name == hidden:
                        continue
                    if not item.name.isascii() and not _is_unicode(item.name):
                        _log.warning(
                            "A file name under %s is not UTF-8 and is left out: %a", directory, item.name
                        )
                        continue
                    yield item
        except OSError as error:
            raise StoreError(f"cannot list {directory}: {error.strerror}") from error
        finally:
            os.close(descriptor)


def _read_ahead(runs: Iterator[Run]) -> Iterator[Batch]:
    try:
        ahead = ReadAhead()
    except OSError as error:
        raise StoreError(f"cannot start processes that read objects: {error}") from error
    with ahead:
        yield from ahead.read(runs)


def _check_names(key: str) -> str:
    """Return ``key`` where files can have it.

    Raises:
        InvalidKey: it is no key, or a segment is too long for a file's name.
    """
    check_key(key)
    if key.isascii() and len(key) <= _NAME_BYTES:
        return key  # short enough in every part
    if max(len(segment.encode()) for segment in key.split("/")) > _NAME_BYTES:
        raise InvalidKey(f"a segment of an object key has at most {_NAME_BYTES} bytes in files: {key!r}")
    return key


def _folder_of(key: str) -> str:
    return key[: key.rfind("/") + 1]


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
