"""Files of one folder after another, read whole, each at once: for hundreds of thousands of small ones."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from tenantadmin.objectstore.batch import Entry
from tenantadmin.objectstore.reader_program import FILE_FLAGS, FOLDER_FLAGS, etag_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class Run(NamedTuple):
    """Files of one folder, in the order in which they are wanted; ``at`` is what their keys begin with."""

    folder: str
    at: str
    names: list[str]


def read_run(run: Run) -> Iterator[tuple[Entry, bytes]]:
    """The files of a run that are there, in order, each as it was before it was read.

    The folder is walked to once.

    Raises:
        OSError: the folder or a file, which it names, could not be read.
    """
    path, folder = run.folder, -1
    try:
        folder = _open_folder(path)
        for name in run.names if folder >= 0 else ():
            path = f"{run.folder}/{name}"
            if (found := _read(folder, name)) is not None:
                status, body = found
                yield Entry(run.at + name, status.st_size, etag_of(status)), body
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
    """All bytes of a file that is likely to have ``size`` of them."""
    body = os.read(descriptor, size + 1)
    if len(body) == size:
        return body
    pieces = [body]
    while piece := os.read(descriptor, size + 1):
        pieces.append(piece)
    return b"".join(pieces)
