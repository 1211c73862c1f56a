"""Files of one folder after another, read whole, each at once: for hundreds of thousands of small ones."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A symbolic link is no object.
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class Run(NamedTuple):
    """Files of one folder, in the order in which they are wanted."""

    folder: str
    names: list[str]


class Found(msgspec.Struct, frozen=True, gc=False):
    """A file's bytes, and its size and etag before they were read; the etag changes whenever they do."""

    size: int
    etag: str
    body: bytes


def read_run(run: Run) -> Iterator[Found | None]:
    """The files of a run, in order; None in place of what is no file. The folder is walked to once.

    Raises:
        OSError: the folder or a file, which it names, could not be read.
    """
    path, folder = run.folder, -1
    try:
        folder = _open_folder(path)
        for name in run.names:
            path = f"{run.folder}/{name}"
            yield None if folder < 0 else _read(folder, name)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        if folder >= 0:
            os.close(folder)


def _open_folder(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return -1


def _read(folder: int, name: str) -> Found | None:
    try:
        descriptor = os.open(name, READ, dir_fd=folder)
        try:
            status = os.fstat(descriptor)
            return Found(status.st_size, etag_of(status), read_whole(descriptor, status.st_size))
        finally:
            os.close(descriptor)
    except (FileNotFoundError, IsADirectoryError):
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


def etag_of(status: os.stat_result) -> str:
    """What changes whenever the content of a file does."""
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}-{status.st_size:x}"
