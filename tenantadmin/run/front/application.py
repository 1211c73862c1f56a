"""An ASGI application around a WSGI application. A request takes a thread only when it is complete."""

from __future__ import annotations

import asyncio
import io
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.serving import DISCONNECTION_KEY, REFUSAL_KEY, Disconnection
from tenantadmin.run.front.bodies import BodyReceiver, BodyTooLarge
from tenantadmin.run.front.environ import make_environ
from tenantadmin.run.front.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from wsgiref.types import WSGIApplication

    from tenantadmin.run.front.bodies import BodyLimits, Receive

    Send = Callable[[dict[str, Any]], Awaitable[None]]

#: Bytes of a streamed response that are sent at once.
_PIECE_BYTES: Final = 1 << 16

#: A client must take each piece within this time. Until then the response keeps its thread.
_SEND_SECONDS: Final = 30.0


class _ClientGone(Exception):
    """The client has closed the connection, or does not read the response."""


class Front:
    """The ASGI application.

    Args:
        application: Django's WSGI application.
        threads: how many requests are answered at a time.
        limits: of bodies.
    """

    def __init__(self, application: WSGIApplication, *, threads: int, limits: BodyLimits) -> None:
        self._application = application
        self._threads = Threads(threads)
        self._bodies = BodyReceiver(limits)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = _Exchange(self._application, receive, send)
        request = make_environ(scope)
        is_chunked = "HTTP_TRANSFER_ENCODING" in request
        if not is_chunked and request.get("CONTENT_LENGTH", "0") == "0":
            request[DISCONNECTION_KEY] = exchange.disconnection
            await exchange.answer(self._threads, request)
            return
        with self._bodies.body() as body:
            # A client may repeat the header; the server has checked that all are equal.
            declared = None if is_chunked else int(request["CONTENT_LENGTH"].partition(",")[0])
            try:
                content = await body.receive(receive, declared=declared)
            except BodyTooLarge as refusal:
                # Django answers 413 by the length.
                request["CONTENT_LENGTH"] = str(refusal.size)
                await exchange.answer(self._threads, request, closes=True)
                await body.drain(receive)
                return
            except ApiError as refusal:
                request["CONTENT_LENGTH"] = "0"
                # With its traceback it would keep this frame alive, and so the connection open.
                refusal.__context__ = None
                request[REFUSAL_KEY] = refusal.with_traceback(None)
                await exchange.answer(self._threads, request, closes=True)
                return
            request["CONTENT_LENGTH"] = str(len(content))
            request["wsgi.input"] = io.BytesIO(content)
            request[DISCONNECTION_KEY] = exchange.disconnection
            await exchange.answer(self._threads, request)


class _Exchange:
    """One request and its response."""

    def __init__(self, application: WSGIApplication, receive: Receive, send: Send) -> None:
        self._application = application
        self._receive = receive
        self._send = send
        self._loop = asyncio.get_running_loop()
        # The thread that answers asks.
        self.disconnection = Disconnection(partial(self._loop.call_soon_threadsafe, self._watch))
        self._watching: asyncio.Task[None] | None = None
        self._is_started = False
        self._is_answered = False

    def _watch(self) -> None:
        """Watch from now on whether the client closes the connection."""
        if self._watching is None and not self._is_answered:
            self._watching = self._loop.create_task(self._wait_for_disconnect())

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] == "http.request":
            pass
        self.disconnection.set()

    async def answer(self, threads: Threads, environ: dict[str, Any], *, closes: bool = False) -> None:
        """Run the application in a thread and send its response. ``closes``: the connection ends with it."""
        try:
            start, body = await threads.run(partial(self._run, environ))
            if closes:
                start["headers"].append((b"connection", b"close"))
            if not self._is_started:
                await self._send(start)
            await self._send({"type": "http.response.body", "body": body})
        except _ClientGone:
            return
        finally:
            self._is_answered = True
            self.disconnection.forget()
            if self._watching:
                self._watching.cancel()

    def _run(self, environ: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Run the application. Return the start of the response, and what is left to send of its body."""
        start: dict[str, Any] = {"type": "http.response.start"}

        def start_response(status: str, headers: list[tuple[str, str]], _exc_info: Any = None) -> Any:
            start["status"] = int(status[:3])
            start["headers"] = [(_encode_name(name), value.encode("latin-1")) for name, value in headers]

        response = self._application(environ, start_response)
        try:
            return start, self._stream(start, response)
        finally:
            close = getattr(response, "close", None)
            if close:
                close()

    def _stream(self, start: dict[str, Any], response: Iterable[bytes]) -> bytes:
        """Send the response except for its last piece, and return that."""
        pieces: list[bytes] = []
        size = 0
        for chunk in response:
            if size + len(chunk) > _PIECE_BYTES and pieces:
                self._send_piece(start, b"".join(pieces))
                pieces, size = [], 0
            pieces.append(chunk)
            size += len(chunk)
        return b"".join(pieces)

    def _send_piece(self, start: dict[str, Any], piece: bytes) -> None:
        asyncio.run_coroutine_threadsafe(self._deliver(start, piece), self._loop).result()

    async def _deliver(self, start: dict[str, Any], piece: bytes) -> None:
        """Send a piece of a response that continues.

        Raises:
            _ClientGone
        """
        if not self._is_started:
            self._is_started = True
            self._watch()
            await self._send(start)
        if self.disconnection.happened():
            raise _ClientGone
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        except TimeoutError:
            raise _ClientGone from None


@lru_cache(maxsize=1000)
def _encode_name(name: str) -> bytes:
    return name.lower().encode("latin-1")
