"""A proxy in front of an HTTP server. A test can let requests fail like in a network."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import ClassVar
from urllib.parse import urlsplit


class Fault(Enum):
    """What the client gets instead of the response."""

    #: A 500. The server gets no request.
    ERROR = "error"
    #: The headers, half of the body, and the end of the connection.
    CUT = "cut"
    #: The headers, half of the body, and then nothing until the test is over.
    STALL = "stall"


@dataclass(frozen=True)
class Request:
    """What a test can use to choose the requests that fail."""

    method: str
    path: str


class FaultyProxy:
    """Forwards requests to ``target`` (``http://host:port``), except those that `failing` selects."""

    def __init__(self, target: str) -> None:
        self.target = urlsplit(target)
        self.released = Event()
        self._lock = Lock()
        self._fault = Fault.ERROR
        self._applies: Callable[[Request], bool] = lambda _: False
        #: Requests that were answered with a fault.
        self.failed: list[Request] = []

    @contextmanager
    def failing(self, fault: Fault, applies: Callable[[Request], bool]) -> Iterator[None]:
        """Let requests fail for which ``applies`` returns True. It is called for one request at a time."""
        with self._lock:
            self._fault, self._applies, self.failed = fault, applies, []
        try:
            yield
        finally:
            with self._lock:
                self._applies = lambda _: False

    def fault_of(self, request: Request) -> Fault | None:
        """Return the fault of a new request, or None. Record the request if it fails."""
        with self._lock:
            if not self._applies(request):
                return None
            self.failed.append(request)
            return self._fault


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: ClassVar[FaultyProxy]

    def handle_any(self) -> None:
        """Forward one request, or let it fail."""
        body = self._read_body()
        fault = self.proxy.fault_of(Request(self.command, self.path))
        if fault is Fault.ERROR:
            self._send(500, [("Content-Type", "text/plain")], b"out of order", sent=1.0)
            return
        target = self.proxy.target
        connection = http.client.HTTPConnection(target.hostname or "", target.port)
        try:
            # The signature covers the host name that the client used, so the Host header must not change.
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in {"content-length", "transfer-encoding", "expect", "connection"}:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            self._send(answer.status, answer.getheaders(), answer.read(), sent=1.0 if fault is None else 0.5)
        finally:
            connection.close()
        if fault is Fault.STALL:
            self.proxy.released.wait(60)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815  # the library's names

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _send(self, status: int, headers: list[tuple[str, str]], body: bytes, *, sent: float) -> None:
        length = {name.lower(): value for name, value in headers}.get("content-length", str(len(body)))
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(body if sent == 1.0 else body[: int(len(body) * sent)])
        self.wfile.flush()
        self.close_connection = sent < 1.0

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def running_proxy(target: str) -> Iterator[tuple[FaultyProxy, str]]:
    """Run a proxy in front of ``target``. Yield the proxy and its URL."""
    proxy = FaultyProxy(target)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        proxy.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
