"""Objects as files under one directory."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from tenantadmin.objectstore.interface import (
    Child,
    Entry,
    InvalidKey,
    ObjectNotFound,
    StoreError,
    check_key,
    check_prefix,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import timedelta

_log = logging.getLogger(__name__)

#: A symbolic link is no object.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Where files are written before they are renamed into place; never listed.
_STAGING: Final = ".staging"

#: Bytes of a file's name, at most.
_NAME_BYTES: Final = 255


class LocalStore:
    """An object store in the directory ``root``, which is made when the first object is written.

    Symbolic links below ``root`` are neither listed nor followed, so no key leads out of it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._root_text = str(self._root)
        self._inside: str | None = None

    @property
    def url(self) -> str:
        return self._root.as_uri()

    def uri(self, key: str) -> str:
        return self._path(key)

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
                    yield Entry(at + item.name, status.st_size, _etag(status))

    def children(self, prefix: str) -> Iterator[Child]:
        base = self._directory(prefix)
        for item in self._scan(base) if base else ():
            if item.is_dir(follow_symlinks=False):
                if next(self.list(f"{prefix}{item.name}/"), None) is not None:
                    yield Child(item.name, is_object=False)
            elif item.is_file(follow_symlinks=False):
                yield Child(item.name, is_object=True)

    def stat(self, key: str) -> Entry:
        with self.open(key) as stream:
            status = os.fstat(stream.fileno())
            return Entry(key, status.st_size, _etag(status))

    def read(self, key: str) -> bytes:
        descriptor, size = self._open(key)
        try:
            return _read_whole(descriptor, size)
        except OSError as error:
            raise StoreError(f"cannot read {key!r}: {error.strerror}") from error
        finally:
            os.close(descriptor)

    def read_many(self, objects: Iterable[tuple[str, int]]) -> Iterator[bytes | None]:
        # Called for all of a day: a folder is walked to once, no stream is made, and a file read at once.
        folder, descriptor = "", -1
        try:
            for key, _ in objects:
                parent, _, name = _check_names(key).rpartition("/")
                if parent != folder or descriptor < 0:
                    if descriptor >= 0:
                        os.close(descriptor)
                    descriptor, folder = self._open_folder(key), parent
                found = None if descriptor < 0 else _read_in(descriptor, name, key)
                yield None if found is None else found[1]
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def read_all(self, prefix: str, wanted: Callable[[str], object]) -> Iterator[tuple[Entry, bytes]]:
        base = self._directory(prefix)
        if base:
            yield from self._read_below(base, prefix, wanted)

    def _read_below(
        self, directory: Path, at: str, wanted: Callable[[str], object]
    ) -> Iterator[tuple[Entry, bytes]]:
        # With its slash a folder's name sorts as the keys below it do.
        names = sorted(
            name
            for item in self._scan(directory)
            if (name := _name_in_keys(item)) and (name.endswith("/") or wanted(at + name))
        )
        folder = -1
        try:
            for name in names:
                if name.endswith("/"):
                    yield from self._read_below(directory / name[:-1], at + name, wanted)
                    continue
                key = at + name
                if folder < 0 and (folder := self._open_folder(key)) < 0:
                    return
                if (found := _read_in(folder, name, key)) is not None:
                    status, body = found
                    yield Entry(key, status.st_size, _etag(status)), body
        finally:
            if folder >= 0:
                os.close(folder)

    def _open_folder(self, key: str) -> int:
        """A descriptor of the folder that an object lies in; -1 where there is none."""
        path = self._path(key).rpartition("/")[0]
        try:
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return -1
        except OSError as error:
            raise StoreError(f"cannot read {key!r}: {error.strerror}") from error

    @contextmanager
    def open(self, key: str) -> Iterator[BinaryIO]:
        descriptor, _ = self._open(key)
        with os.fdopen(descriptor, "rb", buffering=0) as stream:
            yield stream

    def _open(self, key: str) -> tuple[int, int]:
        """A descriptor of the object's file, and its size."""
        path = self._path(key)
        try:
            descriptor = os.open(path, _READ)
        except (FileNotFoundError, NotADirectoryError):
            raise ObjectNotFound(key) from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise ObjectNotFound(key) from None
            raise StoreError(f"cannot read {key!r}: {error.strerror}") from error
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise ObjectNotFound(key)
        return descriptor, status.st_size

    def write(self, key: str, content: bytes | BinaryIO) -> None:
        path = Path(self._path(key))
        staging = self._root / _STAGING
        temporary = staging / uuid.uuid4().hex
        try:
            staging.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as stream:
                if isinstance(content, bytes):
                    stream.write(content)
                else:
                    shutil.copyfileobj(content, stream, 1 << 20)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
            _sync_directory(path.parent)
        except OSError as error:
            raise StoreError(f"cannot write {key!r}: {error.strerror}") from error
        finally:
            temporary.unlink(missing_ok=True)

    def delete(self, key: str) -> None:
        try:
            Path(self._path(key)).unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as error:
            raise StoreError(f"cannot delete {key!r}: {error.strerror}") from error

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

    def _path(self, key: str) -> str:
        path = f"{self._root_text}/{_check_names(key)}"
        self._check_inside(path.rpartition("/")[0], key)
        return path

    def _directory(self, prefix: str) -> Path | None:
        if check_prefix(prefix):
            _check_names(prefix[:-1])
        directory = self._root / prefix
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


def _name_in_keys(item: os.DirEntry[str]) -> str:
    """What keys have for a file, or with a slash for a folder; empty for what is neither."""
    if item.is_dir(follow_symlinks=False):
        return f"{item.name}/"
    return item.name if item.is_file(follow_symlinks=False) else ""


def _read_in(folder: int, name: str, key: str) -> tuple[os.stat_result, bytes] | None:
    """A file of an open folder, and what it was before it was read; None where there is no such file."""
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
        try:
            status = os.fstat(descriptor)
            return status, _read_whole(descriptor, status.st_size)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise StoreError(f"cannot read {key!r}: {error.strerror}") from error


def _read_whole(descriptor: int, size: int) -> bytes:
    """All bytes of a file that is likely to have ``size`` of them."""
    body = os.read(descriptor, size + 1)
    if len(body) == size:
        return body
    pieces = [body]
    while piece := os.read(descriptor, size + 1):
        pieces.append(piece)
    return b"".join(pieces)


def _etag(status: os.stat_result) -> str:
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
