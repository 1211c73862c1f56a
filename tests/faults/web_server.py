"""A web server as production starts it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from tenantadmin.run.serve import web
from tenantadmin.run.serve.address import Address
from tests.ports import kept_port

ROOT = Path(__file__).parents[2]


class Server:
    """The web server of production, on a free port. `environment` is added to the variables of the tests."""

    def __init__(self, **environment: str) -> None:
        with kept_port() as self.port:
            self.url = f"http://127.0.0.1:{self.port}"
            self.process = subprocess.Popen(
                web.web_command(Address("127.0.0.1", self.port)),
                cwd=ROOT,
                env={**os.environ, "DJANGO_SETTINGS_MODULE": "tenantadmin.settings", **environment},
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            deadline = time.monotonic() + 60
            while True:
                with contextlib.suppress(OSError):
                    # Each worker has a socket of its own: both must answer.
                    for _ in range(20):
                        self.health()
                    return
                assert self.process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def health(self) -> float:
        """Return the seconds that an answer took."""
        started = time.monotonic()
        with urllib.request.urlopen(f"{self.url}/health", timeout=10) as answer:  # noqa: S310 - our own
            assert answer.read() == b'{"status":"ok"}'
        return time.monotonic() - started

    def connect(self, request: bytes) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        connection.sendall(request)
        return connection

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def read_all(connection: socket.socket) -> bytes:
    """Return everything until the server closes the connection."""
    with connection:
        return b"".join(iter(lambda: connection.recv(65_536), b""))
