"""An ASGI application around a WSGI application. A request takes a thread only when it is complete."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote_to_bytes
from wsgiref.types import WSGIApplication

from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.serving import (
    CALLER_KEY,
    DISCONNECTION_KEY,
    REFUSAL_KEY,
    UNREAD_KEY,
    Disconnection,
    note_arrival,
)
from tenantadmin.run.front.answers import Delivery, ReaderGone
from tenantadmin.run.front.bodies import BodyReceiver, BodyTooLarge

if TYPE_CHECKING:
    #: Runs a function, and returns how to tell the event loop of its result.
    Job = Callable[[], Callable[[], object]]

    from tenantadmin.run.front.answers import Answers, Send
    from tenantadmin.run.front.bodies import BodyLimits, Receive

_CONSTANT: Final[Mapping[str, Any]] = {
    "SCRIPT_NAME": "",
    "wsgi.errors": sys.stderr,
    "wsgi.multiprocess": True,
    "wsgi.multithread": True,
    "wsgi.run_once": False,
    "wsgi.version": (1, 0),
}


# Clients may send any names.
@lru_cache(maxsize=1000)
def _key(name: bytes) -> str:
    """Return the key of a header (lower-case name) in the environment; empty for an ignored header."""
    if b"_" in name:
        # X_Forwarded_For would have the key of X-Forwarded-For, which only trusted proxies set.
        return ""
    key = name.decode("latin-1").replace("-", "_").upper()
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"


def make_environ(scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment of a request, with an empty body."""
    path: bytes = scope["raw_path"]
    environ: dict[str, Any] = {
        **_CONSTANT,
        "REQUEST_METHOD": scope["method"],
        "PATH_INFO": (unquote_to_bytes(path) if b"%" in path else path).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": scope["server"][0],
        "SERVER_PORT": str(scope["server"][1]),
        "REMOTE_ADDR": scope["client"][0],
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(),
    }
    for name, value in scope["headers"]:
        key = _key(name)
        text = value.decode("latin-1")
        if key in environ:
            environ[key] += ("; " if key == "HTTP_COOKIE" else ",") + text
        elif key:
            environ[key] = text
    return environ


T = TypeVar("T")


class Threads:
    """Runs functions in at most ``count`` threads. A thread starts when all others are busy, and stays.

    The thread that became idle last takes the next function: its database connection and memory are in the
    caches still.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._started = 0
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._idle: list[SimpleQueue[Job]] = []

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Return the result of ``function()`` as a future of the running event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def job() -> Callable[[], object]:
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001 - raised where the future is awaited
                return partial(loop.call_soon_threadsafe, _fail, future, error)
            return partial(loop.call_soon_threadsafe, _finish, future, result)

        with self._lock:
            if self._idle:
                self._idle.pop().put(job)
            elif self._started < self._count:
                self._started += 1
                name = f"request-{self._started}"
                threading.Thread(target=self._work, args=(job,), name=name, daemon=True).start()
            else:
                self._waiting.append(job)
        return future

    def _work(self, job: Job) -> None:
        own: SimpleQueue[Job] = SimpleQueue()
        while True:
            tell = job()
            with self._lock:
                following = self._waiting.popleft() if self._waiting else None
                if following is None:
                    self._idle.append(own)
            # The thread is idle before the loop hears of the result: the client's next request can have it.
            tell()
            # Nothing of the request may live while the thread waits for the next one.
            del job, tell
            job = following or own.get()


def _finish(future: asyncio.Future[T], result: T) -> None:
    if not future.cancelled():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.cancelled():
        future.set_exception(error)


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
