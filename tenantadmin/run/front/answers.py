"""Bring answers to their readers. A slow reader keeps neither a thread nor memory: a file has the rest.

The thread that makes an answer sends it while the reader keeps up. If the reader is slow, the thread writes
the rest into a file, which the event loop sends. If too much is unread already, the thread waits for its
reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from threading import Lock
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tenantadmin.lib.core.serving import UnreadBytes

    Send = Callable[[dict[str, Any]], Awaitable[None]]

logger: Final = logging.getLogger(__name__)

#: Bytes of an answer that are sent at once.
PIECE_BYTES: Final = 1 << 17


class ReaderGone(Exception):
    """The client has closed the connection, or reads too slowly."""


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Limits on readers.

    Attributes:
        patience: seconds that a thread waits for the reader of one answer in all.
        fast_bytes: for a reader of so many bytes a second, a thread waits on.
        stall_seconds: how long a reader may take for a piece.
        slowest_bytes: a reader must take so many bytes a second, after ``stall_seconds``.
        waiting: how many threads may wait for readers because no more bytes may be kept. The connections of
            others are closed.
    """

    patience: float = 1.0
    fast_bytes: int = 8 << 20
    stall_seconds: float = 30.0
    slowest_bytes: int = 16 << 10
    waiting: int = 8


class Answers:
    """The answers of one process.

    Args:
        unread: counts what is kept in files.
    """

    def __init__(self, limits: AnswerLimits, unread: UnreadBytes) -> None:
        self.limits = limits
        self.unread = unread
        self._lock = Lock()
        self._waiting = 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a thread wait for its reader in the block.

        Raises:
            ReaderGone: too many threads wait.
        """
        with self._lock:
            if self._waiting == self.limits.waiting:
                logger.warning("Too many threads wait for slow readers: the connection of one is closed.")
                raise ReaderGone
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1


class Delivery:
    """Brings one answer to its reader.

    The thread that makes the answer calls `take`, then the event loop calls `send_rest` and `close`.

    Args:
        send: sends a message to the client.
        is_gone: tells whether the client has closed the connection.
    """

    def __init__(self, answers: Answers, send: Send, is_gone: Callable[[], bool]) -> None:
        self._answers = answers
        self._limits = answers.limits
        self._send = send
        self._is_gone = is_gone
        self._loop = asyncio.get_running_loop()
        #: The first message.
        self.start: dict[str, Any] = {"type": "http.response.start"}
        #: Whose bytes are counted.
        self.caller = ""
        self._is_started = False
        self._is_given_up = False
        #: Pieces go one after the other.
        self._turn = asyncio.Lock()
        #: Seconds that the thread has waited, and that the reader has taken for so many bytes.
        self._waited = 0.0
        self._taken = 0.0
        self._sent = 0
        self._file: IO[bytes] | None = None
        self._kept = 0

    def take(self, chunks: Iterable[bytes]) -> bytes:
        """Send an answer except for its last piece, and return that. Keep the rest for a slow reader.

        Raises:
            ReaderGone
        """
        last = b""
        for piece in cut(chunks):
            if last:
                self._pass_on(last)
            last = piece
        return last

    def _pass_on(self, piece: bytes) -> None:
        if self._file is not None:
            self._keep(self._file, piece)
            return
        patience = self._limits.patience + self._sent / self._limits.fast_bytes - self._waited
        started = monotonic()
        try:
            self._run(self._deliver(piece)).result(max(patience, 0.0))
        except TimeoutError:
            # The loop goes on to deliver this piece.
            self._file = TemporaryFile()  # noqa: SIM115  # `close` closes it
        self._waited += monotonic() - started

    def _keep(self, file: IO[bytes], piece: bytes) -> None:
        """Write a piece into the file. If no more may be kept, wait until the reader has taken all."""
        if self._is_given_up or self._is_gone():
            raise ReaderGone
        if self._answers.unread.take(self.caller, len(piece)):
            self._kept += len(piece)
            file.write(piece)
            return
        with self._answers.waiting():
            self._run(self._send_file(file)).result()
            self._run(self._deliver(piece)).result()

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def send_rest(self, last: bytes) -> None:
        """Send what is kept, and the last piece.

        Raises:
            ReaderGone
        """
        if self._file is not None:
            await self._send_file(self._file)
            # After the piece that was on its way when the file was begun.
            await self._deliver(last)
            last = b""
        if not self._is_started:
            await self._send(self.start)
        await self._send({"type": "http.response.body", "body": last})

    async def _send_file(self, file: IO[bytes]) -> None:
        """Send what is in the file, and empty it."""
        file.seek(0)
        while piece := file.read(PIECE_BYTES):
            await self._deliver(piece)
        file.seek(0)
        file.truncate()
        self._give_back()

    async def _deliver(self, piece: bytes) -> None:
        """Send a piece of an answer that continues.

        Raises:
            ReaderGone
        """
        async with self._turn:
            if self._is_given_up or self._is_gone():
                raise ReaderGone
            if not self._is_started:
                self._is_started = True
                await self._send(self.start)
            allowed = self._limits.stall_seconds + self._sent / self._limits.slowest_bytes - self._taken
            started = self._loop.time()
            try:
                async with asyncio.timeout(min(allowed, self._limits.stall_seconds)):
                    await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            except TimeoutError:
                self._is_given_up = True
                raise ReaderGone from None
            self._taken += self._loop.time() - started
            self._sent += len(piece)

    def close(self) -> None:
        """Forget what is kept."""
        self._is_given_up = True
        if self._file is not None:
            self._file.close()
            self._give_back()

    def _give_back(self) -> None:
        kept, self._kept = self._kept, 0
        self._answers.unread.give_back(self.caller, kept)


def cut(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of ``chunks`` in pieces. Short chunks are joined, long ones cut."""
    joined: list[bytes] = []
    size = 0
    for chunk in chunks:
        if size + len(chunk) > PIECE_BYTES and joined:
            yield b"".join(joined)
            joined, size = [], 0
        if len(chunk) > PIECE_BYTES:
            view = memoryview(chunk)
            for start in range(0, len(chunk), PIECE_BYTES):
                yield bytes(view[start : start + PIECE_BYTES])
            continue
        joined.append(chunk)
        size += len(chunk)
    yield b"".join(joined)
