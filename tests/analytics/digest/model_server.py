"""A stub of a language model: a real HTTP server that answers what a test tells it to."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Model:
    """What the stub was asked, and how it answers: `respond` writes a whole response to the handler."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.respond: Callable[[BaseHTTPRequestHandler, dict[str, Any]], None] = lambda _, __: None
        self.url = ""

    def answers(self, choose: Callable[[list[list[list[str]]]], Any]) -> None:
        """Answer with wordings that ``choose`` takes from the wordings of each sentence of each section."""

        def respond(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
            data = json.loads(body["messages"][1]["content"])
            chosen = choose([section["sentences"] for section in data["sections"]])
            content = chosen if isinstance(chosen, str) else json.dumps({"wordings": chosen})
            send(handler, json.dumps({"choices": [{"message": {"content": content}}]}).encode())

        self.respond = respond


def send(handler: BaseHTTPRequestHandler, body: bytes, *, status: int = 200) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def running_model() -> Iterator[Model]:
    """Run the stub on 127.0.0.1 until the block ends."""
    model = Model()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model.requests.append({"path": self.path, "body": body})
            model.headers.append(dict(self.headers))
            try:
                model.respond(self, body)
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
