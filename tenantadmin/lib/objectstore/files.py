"""Reading of hundreds of thousands of small files, folder by folder."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from tenantadmin.lib.objectstore.batch import Entry
from tenantadmin.lib.objectstore.reader_program import FILE_FLAGS, FOLDER_FLAGS, etag_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class FolderFiles(NamedTuple):
    """Names of files in one folder, in the order in which to read them. Their keys are ``prefix + name``."""

    folder: str
    prefix: str
    names: list[str]


def read_files(files: FolderFiles) -> Iterator[tuple[Entry, bytes]]:
    """Yield each file that exists, in order, with the size and etag that it had just before it was read.

    Opens the folder once, and the files relative to it: the kernel resolves a long path only once.

    Raises:
        OSError: the folder or a file could not be read. The error has its path.
    """
    path, folder = files.folder, -1
    try:
        folder = _open_folder(path)
        for name in files.names if folder >= 0 else ():
            path = f"{files.folder}/{name}"
            if (found := _read(folder, name)) is not None:
                status, body = found
                yield Entry(files.prefix + name, status.st_size, etag_of(status)), body
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        if folder >= 0:
            os.close(folder)


def _open_folder(path: str) -> int:
    try:
        return os.open(path, FOLDER_FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return -1


def _read(folder: int, name: str) -> tuple[os.stat_result, bytes] | None:
    try:
        descriptor = os.open(name, FILE_FLAGS, dir_fd=folder)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return None
            return status, read_whole(descriptor, status.st_size)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise


def read_whole(descriptor: int, size: int) -> bytes:
    """Return the whole content of a file, which had ``size`` bytes when it was opened."""
    # Asking for one byte more shows in the same call whether the file has grown.
    body = os.read(descriptor, size + 1)
    if len(body) == size:
        return body
    pieces = [body]
    while piece := os.read(descriptor, size + 1):
        pieces.append(piece)
    return b"".join(pieces)
