"""Many small files, read by processes of their own ahead of whoever takes them.

To open, look at, read and close a small file takes longer than all that is done with it afterwards, and holds
the interpreter for half of that time; where no memory holds it, the disk is waited for.
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

from tenantadmin.objectstore import reader_program
from tenantadmin.objectstore.batch import OBJECTS, Batch, Entry, in_batches, starts_of
from tenantadmin.objectstore.files import read_run
from tenantadmin.objectstore.reader_program import LIST_BYTES, MESSAGE_BYTES, NOT_READ, ROOM_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tenantadmin.objectstore.files import Run

#: More help with a cold disk alone, where 200,000 files took one 29 s, two 14 and four 11.
_PROCESSES: Final = 2
#: Requests on their way to each, with a room for each.
_AHEAD: Final = 3
#: Linux's MFD_NOEXEC_SEAL: nothing in it can be executed.
_NOEXEC_SEAL: Final = 8


class ReadAhead:
    """Reads runs as `read_run` does, in processes. To be closed, after which nothing is left of them.

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

    def read(self, runs: Iterable[Run]) -> Iterator[Batch]:
        """The files of all runs that are there, in order. Runs are taken as there is room for them.

        Raises:
            OSError: a file could not be read, or a process died.
        """
        parts = (
            run._replace(names=run.names[start : start + OBJECTS])
            for run in runs
            for start in range(0, len(run.names), OBJECTS)
        )
        free = deque((process, room) for room in range(_AHEAD) for process in self._processes)
        asked: deque[tuple[_Process, int, Run]] = deque()
        while True:
            while free and (part := next(parts, None)) is not None:
                process, room = free.popleft()
                process.ask(room, part)
                asked.append((process, room, part))
            if not asked:
                return
            process, room, part = asked.popleft()
            answer = process.answer(room)
            if (count := len(answer.sizes)) < len(part.names):
                rest = part._replace(names=part.names[count:])
                process.ask(room, rest)
                asked.appendleft((process, room, rest))
                part = part._replace(names=part.names[:count])
            else:
                free.append((process, room))
            if NOT_READ in answer.sizes:
                yield from in_batches(_with_the_rest(part, answer))
            else:
                entries = map(Entry, map(part.at.__add__, part.names), answer.sizes, answer.etags)
                yield Batch(list(entries), answer.content, starts_of(answer.sizes))


class _Answer(NamedTuple):
    """Size (`NOT_READ`: left to us) and etag of each file; the bytes of all, a line break between two."""

    sizes: array[int]
    etags: list[str]
    content: bytes


def _with_the_rest(run: Run, answer: _Answer) -> Iterator[tuple[Entry, bytes]]:
    """What was read of a run, and what is left to us."""
    start = 0
    for name, size, etag in zip(run.names, answer.sizes, answer.etags, strict=True):
        if size == NOT_READ:
            yield from read_run(run._replace(names=[name]))
        else:
            yield Entry(run.at + name, size, etag), answer.content[start : start + size]
            start += size + 1


class _Process:
    def __init__(self) -> None:
        with ExitStack() as stack:
            memory = _create_memory()
            stack.callback(os.close, memory)
            os.ftruncate(memory, _AHEAD * ROOM_BYTES)
            self._rooms = stack.enter_context(closing(mmap.mmap(memory, 0)))
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.enter_context(self._control)
            with theirs:
                self._process = subprocess.Popen(
                    # Without the environment, and what is installed, of which it needs nothing.
                    [sys.executable, "-I", "-S", reader_program.__file__, str(theirs.fileno()), str(memory)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    # Its errors go where ours do, so that what goes wrong there stands in the log.
                    cwd="/",
                    env={"LANG": "C.UTF-8", "TZ": "UTC"},
                    pass_fds=[theirs.fileno(), memory],
                    # Out of the terminal's reach.
                    process_group=0,
                )
            self._stack = stack.pop_all()
        self._answers: dict[int, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._stack.close()

    def ask(self, room: int, run: Run) -> None:
        """Ask for a run, to be answered in this room."""
        wanted = os.fsencode("\0".join([run.folder, *run.names]))
        if len(wanted) > LIST_BYTES:
            raise AssertionError(f"{len(run.names)} names of {len(wanted)} bytes do not fit into a room")
        start = room * ROOM_BYTES
        self._rooms[start : start + len(wanted)] = wanted
        with _told_of_death():
            self._control.send(b"%d %d" % (room, len(wanted)))

    def answer(self, room: int) -> _Answer:
        """What was found of the run that was asked for in this room, of its files all or the first."""
        while room not in self._answers:
            number, count, listed = self._receive()
            self._answers[number] = count, listed
        count, listed = self._answers.pop(room)
        start = room * ROOM_BYTES
        sizes = array("q")
        end = start + count * sizes.itemsize
        sizes.frombytes(self._rooms[start:end])
        etags = self._rooms[end : end + listed].decode().split("\0")
        start += LIST_BYTES
        end = start + sum(size + 1 for size in sizes if size != NOT_READ)
        return _Answer(sizes, etags, self._rooms[start : max(start, end - 1)])

    def _receive(self) -> Iterable[int]:
        with _told_of_death():
            if not (message := self._control.recv(MESSAGE_BYTES)):
                raise BrokenPipeError
        return map(int, message.split())


def _create_memory() -> int:
    try:
        return os.memfd_create("tenantadmin-reader", os.MFD_CLOEXEC | _NOEXEC_SEAL)
    except OSError as error:
        # A kernel before 6.3 does not know the flag, which others may insist on.
        if error.errno != errno.EINVAL:
            raise
        return os.memfd_create("tenantadmin-reader")


@contextmanager
def _told_of_death() -> Iterator[None]:
    try:
        yield
    except (BrokenPipeError, ConnectionResetError) as error:
        raise ChildProcessError(errno.ECHILD, "the process that reads files ended") from error
