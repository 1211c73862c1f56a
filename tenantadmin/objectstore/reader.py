"""Many small files, read by processes of their own ahead of whoever takes them.

To open, look at, read and close a small file takes longer than all that is done with it afterwards, and holds
the interpreter for half of that time; where no memory holds it, the disk is waited for. What is asked for and
what is found pass through files without names.
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import tempfile
from collections import deque
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, Final, Self

import msgspec

from tenantadmin.interpreter import clean_command
from tenantadmin.objectstore.files import Found, Run, read_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: More help with a cold disk alone, where 200,000 files took one 29 s, two 14 and four 11.
_PROCESSES: Final = 2
#: Requests on their way to each; files that one is for at most; bytes after which it is answered in part.
_AHEAD: Final = 3
_FILES: Final = 1_000
_BYTES: Final = 8 << 20
_MESSAGE_BYTES: Final = 1 << 16


class _Request(msgspec.Struct, array_like=True):
    """The names stand in the file of this place, in so many bytes."""

    place: int
    size: int


class _Answer(msgspec.Struct, array_like=True, tag=0):
    """In the file stand the bodies, one behind another, and then what each file was, in so many bytes."""

    place: int
    bodies: int
    heads: int


class _Failure(msgspec.Struct, array_like=True, tag=1):
    """What an OSError says."""

    number: int
    reason: str
    path: str


_decode_run: Final = msgspec.msgpack.Decoder(Run).decode
_decode_request: Final = msgspec.msgpack.Decoder(_Request).decode
_decode_answer: Final = msgspec.msgpack.Decoder(_Answer | _Failure).decode
#: The size of each file before it was read, its etag and how many bytes there are; None of what is none.
_decode_heads: Final = msgspec.msgpack.Decoder(list[tuple[int, str, int] | None]).decode
_encode: Final = msgspec.msgpack.Encoder().encode


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

    def read(self, runs: Iterable[Run]) -> Iterator[Found | None]:
        """The files of all runs, in order. Runs are taken as there is room for them.

        Raises:
            OSError: a file could not be read, or a process died.
        """
        parts = (
            Run(run.folder, run.names[start : start + _FILES])
            for run in runs
            for start in range(0, len(run.names), _FILES)
        )
        free = deque((process, place) for place in range(_AHEAD) for process in self._processes)
        asked: deque[tuple[_Process, int, Run]] = deque()
        while True:
            while free and (part := next(parts, None)) is not None:
                process, place = free.popleft()
                process.ask(place, part)
                asked.append((process, place, part))
            if not asked:
                return
            process, place, part = asked.popleft()
            found = process.answer(place)
            if len(found) < len(part.names):
                rest = Run(part.folder, part.names[len(found) :])
                process.ask(place, rest)
                asked.appendleft((process, place, rest))
            else:
                free.append((process, place))
            yield from found


class _Process:
    def __init__(self) -> None:
        with ExitStack() as stack:
            self._files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(_AHEAD)]
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.enter_context(self._control)
            places = [file.fileno() for file in self._files]
            with theirs:
                self._process = subprocess.Popen(
                    clean_command(__name__, theirs.fileno(), places),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    # Its errors go where ours do, so that what goes wrong there stands in the log.
                    cwd="/",
                    env={"LANG": "C.UTF-8", "TZ": "UTC"},
                    pass_fds=[theirs.fileno(), *places],
                    # Out of the terminal's reach.
                    process_group=0,
                )
            self._stack = stack.pop_all()
        self._answers: dict[int, _Answer] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._stack.close()

    def ask(self, place: int, run: Run) -> None:
        """Ask for a run, to be answered in the file of this place."""
        wanted = _encode(run)
        if os.pwrite(self._files[place].fileno(), wanted, 0) < len(wanted):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with _told_of_death():
            self._control.send(_encode(_Request(place, len(wanted))))

    def answer(self, place: int) -> list[Found | None]:
        """What was found of the run that was asked for in this place: of its files all, or the first."""
        while place not in self._answers:
            answer = self._receive()
            self._answers[answer.place] = answer
        answer = self._answers.pop(place)
        content = _read(self._files[place].fileno(), answer.bodies + answer.heads)
        found: list[Found | None] = []
        start = 0
        for head in _decode_heads(memoryview(content)[answer.bodies :]):
            if head is None:
                found.append(None)
                continue
            size, etag, length = head
            found.append(Found(size, etag, content[start : start + length]))
            start += length
        return found

    def _receive(self) -> _Answer:
        with _told_of_death():
            if not (message := self._control.recv(_MESSAGE_BYTES)):
                raise BrokenPipeError
        answer: _Answer | _Failure = _decode_answer(message)
        if isinstance(answer, _Failure):
            raise OSError(answer.number, answer.reason, answer.path)
        return answer


def _read(descriptor: int, size: int) -> bytes:
    """So many bytes from the beginning of a file, which may be more than the system gives at once."""
    pieces = [os.pread(descriptor, size, 0)]
    while (there := sum(map(len, pieces))) < size:
        pieces.append(os.pread(descriptor, size - there, there))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@contextmanager
def _told_of_death() -> Iterator[None]:
    try:
        yield
    except (BrokenPipeError, ConnectionResetError) as error:
        raise ChildProcessError(errno.ECHILD, "the process that reads files ended") from error


def main(control: int, places: Sequence[int]) -> None:
    """The process: answers requests until the other side is gone."""
    with ExitStack() as stack:
        # It is gone while answers are unread, or while one is on its way.
        stack.enter_context(suppress(ConnectionResetError, BrokenPipeError))
        channel = stack.enter_context(socket.socket(fileno=control))
        files = [stack.enter_context(os.fdopen(place, "wb", buffering=1 << 20)) for place in places]
        while message := channel.recv(_MESSAGE_BYTES):
            request = _decode_request(message)
            answer: _Answer | _Failure
            try:
                run = _decode_run(os.pread(places[request.place], request.size, 0))
                answer = _answer(request.place, run, files[request.place])
            except OSError as error:
                answer = _Failure(error.errno or 0, error.strerror or str(error), str(error.filename or ""))
            channel.send(_encode(answer))


def _answer(place: int, run: Run, file: BinaryIO) -> _Answer:
    file.seek(0)
    heads: list[tuple[int, str, int] | None] = []
    written = 0
    for found in read_run(run):
        if found is None:
            heads.append(None)
            continue
        heads.append((found.size, found.etag, len(found.body)))
        file.write(found.body)
        written += len(found.body)
        if written >= _BYTES:
            break
    listed = _encode(heads)
    file.write(listed)
    file.flush()
    return _Answer(place, written, len(listed))
