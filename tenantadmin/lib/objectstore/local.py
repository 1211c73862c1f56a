"""Objects as files under one directory."""

from __future__ import annotations

import errno
import logging
import os
import stat
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from django.core.files import File
from django.core.files.storage import FileSystemStorage

from tenantadmin.lib.objectstore.storage import (
    Entry,
    InvalidKey,
    ObjectNotFound,
    ObjectStore,
    StoreError,
    check_key,
    check_prefix,
)

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore.storage import Names

_log = logging.getLogger(__name__)

#: Flags to open a file: do not follow a symbolic link, do not wait for the writer of a pipe.
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
#: The folder in which files are written before they are renamed to their place. It is never listed.
_STAGING: Final = ".staging"

_MAX_NAME_BYTES: Final = 255
_WRITE_CHUNK_BYTES: Final = 1 << 20


class LocalStore(ObjectStore, FileSystemStorage):
    """An object store in the directory ``location``, which is created when the first object is written.

    `FileSystemStorage` writes into the file that others read, leaves half a file when the disk is full, does
    not sync and follows symbolic links. This class writes a file elsewhere, syncs it and renames it. It does
    not list or follow links below ``location``, so no key leads out of it.
    """

    # A small file is read faster than a task is handed to a thread.
    objects_per_read: ClassVar = 100

    def __init__(self, location: str | Path) -> None:
        super().__init__(os.path.realpath(location))
        self._root_text = str(self.location)
        self._root = Path(self._root_text)
        #: The directory that `_check_inside` accepted last.
        self._accepted_directory: str | None = None

    def path(self, name: str) -> str:
        """Return the absolute path of the object's file, which need not exist.

        Raises:
            ObjectNotFound: the path exists, but is not a file: a folder, a symbolic link, a pipe.
            InvalidKey: no object of this store can have this key.
        """
        path = self._path_of(name)
        try:
            is_file = stat.S_ISREG(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return path
        if not is_file:
            raise ObjectNotFound(name)
        return path

    def uri(self, key: str) -> str:
        """Return the `path` with which a query engine on this machine can open the object.

        Raises:
            StoreError: as `path`, or the disk failed.
        """
        with self.translated("read", key):
            return self.path(key)

    def uris(self, keys: Sequence[str]) -> Sequence[str]:
        """Return the `uri` of each key, in order. Each shared parent folder is checked once per call.

        Raises:
            InvalidKey: no object of this store can have one of the keys.
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
            directory, start = pending.pop()
            for item in self._scan(directory):
                if item.is_dir(follow_symlinks=False):
                    pending.append((directory / item.name, f"{start}{item.name}/"))
                elif item.is_file(follow_symlinks=False):
                    try:
                        status = item.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # deleted since the directory was read
                    except OSError as error:
                        raise StoreError(f"cannot list {directory}: {error.strerror}") from error
                    yield Entry(start + item.name, status.st_size, _etag_of(status))

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

    def _read_if_exists(self, key: str) -> bytes | None:
        # Below Python's files, which take longer to open than a small file to read.
        with self.translated("read", key):
            try:
                descriptor = os.open(self._path_of(key), _FLAGS)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                if error.errno == errno.ELOOP:
                    return None  # a symbolic link
                raise
            try:
                status = os.fstat(descriptor)
                return _read_whole(descriptor, status.st_size) if stat.S_ISREG(status.st_mode) else None
            finally:
                os.close(descriptor)

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        # Opened by descriptor: `File.size` is then the size of this file, even if another has replaced it.
        return File(os.fdopen(os.open(self.path(name), _FLAGS), mode), name)

    def _save(self, name: str, content: File[bytes]) -> str:
        path = Path(self._path_of(name))
        staging = self._root / _STAGING
        temporary = staging / uuid.uuid4().hex
        try:
            staging.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as stream:
                for chunk in content.chunks(_WRITE_CHUNK_BYTES):
                    stream.write(chunk)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
            _sync_directory(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
        return name

    def check_reachable(self, *, seconds: float) -> None:  # noqa: ARG002  # a local disk answers at once
        # The directory is created when the first object is written.
        with self.translated("reach", ""), suppress(FileNotFoundError), os.scandir(self._root_text):
            pass

    def remove_unfinished(self, *, age: timedelta) -> int:
        # A write in progress keeps changing its file's modification time.
        before = time.time() - age.total_seconds()
        removed = 0
        try:
            for path in (self._root / _STAGING).glob("*"):
                with suppress(FileNotFoundError):  # the write has just ended
                    if path.stat().st_mtime <= before:
                        path.unlink()
                        removed += 1
        except OSError as error:
            raise StoreError(f"cannot remove unfinished writes: {error.strerror}") from error
        return removed

    def _path_of(self, key: str) -> str:
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
        # Keys come sorted, many per directory, so remembering the last directory saves most checks.
        if directory == self._accepted_directory:
            return
        if os.path.realpath(directory) != directory or key.split("/", 1)[0] == _STAGING:
            raise InvalidKey(f"object key {key!r} leads out of the store")
        if os.path.isdir(directory):  # noqa: PTH112  # a Path costs time, and this runs for every key
            self._accepted_directory = directory

    def _scan(self, directory: Path) -> Iterator[os.DirEntry[str]]:
        """List a directory. It is opened once, so that a `stat` of an item need not resolve its path."""
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
                            "Skipping a file in %s whose name is not UTF-8: %a", directory, item.name
                        )
                        continue
                    yield item
        except OSError as error:
            raise StoreError(f"cannot list {directory}: {error.strerror}") from error
        finally:
            os.close(descriptor)


def _check_names(key: str) -> str:
    """Return ``key`` if it is valid and each segment can be a file's name.

    Raises:
        InvalidKey: it is not valid, or a segment is too long for a file's name.
    """
    check_key(key)
    if key.isascii() and len(key) <= _MAX_NAME_BYTES:
        return key  # so each segment is short enough
    if max(len(segment.encode()) for segment in key.split("/")) > _MAX_NAME_BYTES:
        raise InvalidKey(f"object key {key!r} has a segment of more than {_MAX_NAME_BYTES} bytes")
    return key


def _read_whole(descriptor: int, size: int) -> bytes:
    """Return the content of a file that had ``size`` bytes when it was opened."""
    # One byte more shows in the same call whether the file has grown.
    body = os.read(descriptor, size + 1)
    if len(body) == size:
        return body
    pieces = [body]
    while piece := os.read(descriptor, size + 1):
        pieces.append(piece)
    return b"".join(pieces)


def _etag_of(status: os.stat_result) -> str:
    """Return a text that changes whenever the content of the file changes."""
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}-{status.st_size:x}"


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
