"""Reading ahead: separate processes read many small files before the caller needs them.

Opening, reading and closing a small file takes longer than all later work on it, and holds the interpreter
lock for half of that time. Files that are not in the page cache must wait for the disk, too.
"""

from __future__ import annotations

import errno
import mmap
import os
import socket
import subprocess
import sys
from array import array
from collections import deque
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from tenantadmin.lib.objectstore import reader_program
from tenantadmin.lib.objectstore.batch import BATCH_OBJECTS, Batch, Entry, in_batches, starts_of
from tenantadmin.lib.objectstore.files import read_files
from tenantadmin.lib.objectstore.reader_program import BUFFER_BYTES, LIST_BYTES, MESSAGE_BYTES, NOT_READ

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tenantadmin.lib.objectstore.files import FolderFiles

#: More processes help only with a cold disk: 200,000 files took one process 29 s, two 14 s and four 11 s.
_PROCESSES: Final = 2
#: Buffers of each process, and so how many requests it may have at once.
_BUFFERS_PER_PROCESS: Final = 3
#: Linux's MFD_NOEXEC_SEAL: nothing in this memory can be executed.
_NOEXEC_SEAL: Final = 8


class ReadAhead:
    """Reads files as `read_files` does, in separate processes. The context manager ends the processes.

    Raises:
        OSError: a process cannot be started.
    """

    def __init__(self) -> None:
        with ExitStack() as stack:
            self._processes = [stack.enter_context(_Process()) for _ in range(_PROCESSES)]
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, folders: Iterable[FolderFiles]) -> Iterator[Batch]:
        """Read those of the files that exist, in order. Take the next folder when a buffer is free.

        Raises:
            OSError: a file could not be read, or a process died.
        """
        parts = (
            files._replace(names=files.names[start : start + BATCH_OBJECTS])
            for files in folders
            for start in range(0, len(files.names), BATCH_OBJECTS)
        )
        free = deque(
            (process, buffer) for buffer in range(_BUFFERS_PER_PROCESS) for process in self._processes
        )
        in_flight: deque[tuple[_Process, int, FolderFiles]] = deque()
        while True:
            while free and (part := next(parts, None)) is not None:
                process, buffer = free.popleft()
                process.send_request(buffer, part)
                in_flight.append((process, buffer, part))
            if not in_flight:
                return
            process, buffer, part = in_flight.popleft()
            response = process.receive_response(buffer)
            if (count := len(response.sizes)) < len(part.names):
                rest = part._replace(names=part.names[count:])
                process.send_request(buffer, rest)
                in_flight.appendleft((process, buffer, rest))
                part = part._replace(names=part.names[:count])
            else:
                free.append((process, buffer))
            if NOT_READ in response.sizes:
                yield from in_batches(_read_missing(part, response))
            else:
                entries = map(Entry, map(part.prefix.__add__, part.names), response.sizes, response.etags)
                yield Batch(list(entries), response.content, starts_of(response.sizes))


class _Response(NamedTuple):
    """Size and etag of each file (`NOT_READ`: read it here), and the contents, separated by line breaks."""

    sizes: array[int]
    etags: list[str]
    content: bytes


def _read_missing(files: FolderFiles, response: _Response) -> Iterator[tuple[Entry, bytes]]:
    """Yield all files in order. Read here those that the process did not read."""
    start = 0
    for name, size, etag in zip(files.names, response.sizes, response.etags, strict=True):
        if size == NOT_READ:
            yield from read_files(files._replace(names=[name]))
        else:
            yield Entry(files.prefix + name, size, etag), response.content[start : start + size]
            start += size + 1


class _Process:
    def __init__(self) -> None:
        with ExitStack() as stack:
            memory = _create_memory()
            stack.callback(os.close, memory)
            os.ftruncate(memory, _BUFFERS_PER_PROCESS * BUFFER_BYTES)
            self._memory = stack.enter_context(closing(mmap.mmap(memory, 0)))
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.enter_context(self._control)
            with theirs:
                self._process = subprocess.Popen(
                    # The program needs neither the environment nor installed packages.
                    [sys.executable, "-I", "-S", reader_program.__file__, str(theirs.fileno()), str(memory)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    # It shares our standard error, so its errors are in our log.
                    cwd="/",
                    env={"LANG": "C.UTF-8", "TZ": "UTC"},
                    pass_fds=[theirs.fileno(), memory],
                    # Ctrl-C in the terminal must not end it before us.
                    process_group=0,
                )
            self._stack = stack.pop_all()
        #: Responses that came while another was awaited: counts by buffer.
        self._received: dict[int, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._stack.close()

    def send_request(self, buffer: int, files: FolderFiles) -> None:
        """Let the process read the files into this buffer."""
        names = os.fsencode("\0".join([files.folder, *files.names]))
        if len(names) > LIST_BYTES:
            raise AssertionError(f"{len(files.names)} names of {len(names)} bytes do not fit into a buffer")
        start = buffer * BUFFER_BYTES
        self._memory[start : start + len(names)] = names
        with _dead_process_raises():
            self._control.send(b"%d %d" % (buffer, len(names)))

    def receive_response(self, buffer: int) -> _Response:
        """Wait for the response in this buffer. It has all the files, or as many of the first as fit."""
        while buffer not in self._received:
            number, count, etags_bytes = self._receive()
            self._received[number] = count, etags_bytes
        count, etags_bytes = self._received.pop(buffer)
        start = buffer * BUFFER_BYTES
        sizes = array("q")
        end = start + count * sizes.itemsize
        sizes.frombytes(self._memory[start:end])
        etags = self._memory[end : end + etags_bytes].decode().split("\0")
        start += LIST_BYTES
        end = start + sum(size + 1 for size in sizes if size != NOT_READ)
        return _Response(sizes, etags, self._memory[start : max(start, end - 1)])

    def _receive(self) -> Iterable[int]:
        with _dead_process_raises():
            if not (message := self._control.recv(MESSAGE_BYTES)):
                raise BrokenPipeError
        return map(int, message.split())


def _create_memory() -> int:
    try:
        return os.memfd_create("tenantadmin-reader", os.MFD_CLOEXEC | _NOEXEC_SEAL)
    except OSError as error:
        # Kernels before 6.3 do not know the flag. Newer ones may be configured to require it.
        if error.errno != errno.EINVAL:
            raise
        return os.memfd_create("tenantadmin-reader")


@contextmanager
def _dead_process_raises() -> Iterator[None]:
    """Raise `ChildProcessError` if the process has closed its end of the socket."""
    try:
        yield
    except (BrokenPipeError, ConnectionResetError) as error:
        raise ChildProcessError(errno.ECHILD, "the process that reads files has died") from error
