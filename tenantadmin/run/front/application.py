"""An ASGI application around a WSGI application. A request takes a thread only when it is complete."""

from __future__ import annotations

import asyncio
import io
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.serving import (
    CALLER_KEY,
    DISCONNECTION_KEY,
    REFUSAL_KEY,
    UNREAD_KEY,
    Disconnection,
)
from tenantadmin.lib.core.work import note_arrival
from tenantadmin.run.front.answers import Delivery, ReaderGone
from tenantadmin.run.front.bodies import BodyReceiver, BodyTooLarge
from tenantadmin.run.front.environ import make_environ
from tenantadmin.run.front.threads import Threads

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from tenantadmin.run.front.answers import Answers, Send
    from tenantadmin.run.front.bodies import BodyLimits, Receive


class Front:
    """The ASGI application.

    Args:
        application: Django's WSGI application.
        threads: how many requests are answered at a time.
        limits: of bodies.
        answers: the limits of answers.
    """

    def __init__(
        self, application: WSGIApplication, *, threads: int, limits: BodyLimits, answers: Answers
    ) -> None:
        self._application = application
        self._threads = Threads(threads)
        self._bodies = BodyReceiver(limits)
        self._answers = answers

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        note_arrival()
        exchange = _Exchange(self._application, self._answers, receive, send)
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

    def __init__(self, application: WSGIApplication, answers: Answers, receive: Receive, send: Send) -> None:
        self._application = application
        self._answers = answers
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        # The thread that answers asks.
        self.disconnection = Disconnection(partial(self._loop.call_soon_threadsafe, self._watch))
        self._watching: asyncio.Task[None] | None = None
        self._is_answered = False
        self._delivery = Delivery(answers, send, self.disconnection.happened)

    def _watch(self) -> None:
        """Watch from now on whether the client closes the connection."""
        if self._watching is None and not self._is_answered:
            self._watching = self._loop.create_task(self._wait_for_disconnect())

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] == "http.request":
            pass
        self.disconnection.set()

    async def answer(self, threads: Threads, request: dict[str, Any], *, closes: bool = False) -> None:
        """Run the application in a thread and send its response. ``closes``: the connection ends with it."""
        try:
            last = await threads.run(partial(self._run, request, closes=closes))
            await self._delivery.send_rest(last)
        except ReaderGone:
            return
        finally:
            self._delivery.close()
            self._is_answered = True
            self.disconnection.forget()
            if self._watching:
                self._watching.cancel()

    def _run(self, request: dict[str, Any], *, closes: bool) -> bytes:
        """Run the application and send its response, except for what this returns and what is kept."""
        start = self._delivery.start

        def start_response(status: str, headers: list[tuple[str, str]], _exc_info: Any = None) -> Any:
            start["status"] = int(status[:3])
            start["headers"] = [(_encode_name(name), value.encode("latin-1")) for name, value in headers]
            if closes:
                start["headers"].append((b"connection", b"close"))

        request[UNREAD_KEY] = self._answers.unread
        response = self._application(request, start_response)
        try:
            self._delivery.caller = request.get(CALLER_KEY, request["REMOTE_ADDR"])
            return self._delivery.take(response)
        finally:
            close = getattr(response, "close", None)
            if close:
                close()


@lru_cache(maxsize=1000)
def _encode_name(name: str) -> bytes:
    return name.lower().encode("latin-1")
