"""Receive the body of a request, with limits on time, rate and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenantadmin.lib.core.errors import BadRequest, RequestTimeout, ServiceBusy

if TYPE_CHECKING:
    Receive = Callable[[], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Limits on bodies.

    Attributes:
        max_bytes: the largest body. Contract: Limits.
        seconds: the time in which the whole body must arrive.
        first_seconds: the time without any progress. Each KiB that arrives adds a second, up to ``seconds``.
        held_bytes: the size of all unanswered bodies in one process.
        drain_bytes, drain_seconds: how much of a body that is too large is read and thrown away after the
            answer. Otherwise a client that sends its whole body before it reads sees a broken connection.
    """

    max_bytes: int
    seconds: float = 10.0
    first_seconds: float = 5.0
    held_bytes: int = 64 << 20
    drain_bytes: int = 8 << 20
    drain_seconds: float = 5.0

    def seconds_for(self, received: int) -> float:
        """Return how long a body may take, of which ``received`` bytes have arrived."""
        return min(self.seconds, self.first_seconds + received / 1024)


class BodyTooLarge(Exception):
    """The body is larger than allowed. ``size`` is its declared length, or what was received of it."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class BodyReceiver:
    """Receives the bodies of one process."""

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self._held = 0

    @contextmanager
    def body(self) -> Iterator[Body]:
        """Yield a body to receive. Its memory counts until the end of the block."""
        body = Body(self._limits, self._hold)
        try:
            yield body
        finally:
            self._held -= body.size

    def _hold(self, size: int) -> None:
        if self._held + size > self._limits.held_bytes:
            raise ServiceBusy
        self._held += size


class Body:
    """One body."""

    def __init__(self, limits: BodyLimits, hold: Callable[[int], None]) -> None:
        self._limits = limits
        self._hold = hold
        self.size = 0

    async def receive(self, receive: Receive, *, declared: int | None) -> bytes:
        """Return the whole body. ``declared`` is its length by the header, None if the body is chunked.

        Raises:
            BodyTooLarge: it is larger than allowed.
            BadRequest: it ended early, or its chunks are malformed.
            RequestTimeout: it did not arrive in time.
            ServiceBusy: the bodies of this process take too much memory.
        """
        if declared is not None and declared > self._limits.max_bytes:
            raise BodyTooLarge(declared)
        chunks = []
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(started + self._limits.seconds_for(0)) as timeout:
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise BadRequest("The body ended before its declared length.")
                    chunk = message.get("body", b"")
                    self._hold(len(chunk))
                    self.size += len(chunk)
                    if self.size > self._limits.max_bytes:
                        raise BodyTooLarge(self.size)
                    chunks.append(chunk)
                    if self.size == declared or not message.get("more_body"):
                        break
                    timeout.reschedule(started + self._limits.seconds_for(self.size))
        except TimeoutError:
            raise RequestTimeout from None
        return b"".join(chunks)

    async def drain(self, receive: Receive) -> None:
        """Read and throw away the rest of the body, within the limits."""
        drained = 0
        try:
            async with asyncio.timeout(self._limits.drain_seconds):
                while drained < self._limits.drain_bytes:
                    message = await receive()
                    if message["type"] != "http.request" or not message.get("more_body"):
                        return
                    drained += len(message["body"])
        except TimeoutError:
            return
