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
from typing import Final

from tenantadmin.run.serve import web
from tenantadmin.run.serve.address import Address
from tests.faults.nginx import Nginx
from tests.ports import reserved_port

ROOT = Path(__file__).parents[2]
#: The program of nginx, if tests are to reach the server through it (`make test-nginx`).
NGINX: Final = os.environ.get("TEST_NGINX", "")


class Server:
    """The web server of production, on a free port. `environment` is added to the variables of the tests."""

    def __init__(self, **environment: str) -> None:
        self._nginx: Nginx | None = None
        with reserved_port() as self.port:
            self.process = subprocess.Popen(
                web.web_command(Address("127.0.0.1", self.port)),
                cwd=ROOT,
                env={
                    **os.environ,
                    "DJANGO_SETTINGS_MODULE": "tenantadmin.settings",
                    **({"TRUSTED_PROXIES": "127.0.0.1"} if NGINX else {}),
                    **environment,
                },
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._wait()
        if NGINX:
            self._nginx = Nginx(NGINX, upstream=self.port)
            self.port = self._nginx.port
            self._wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                # Each worker has a socket of its own: both must answer.
                for _ in range(20):
                    self.health()
                return
            assert self.process.poll() is None
            assert self._nginx is None or self._nginx.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def health(self) -> float:
        """Return the seconds that an answer took."""
        started = time.monotonic()
        with urllib.request.urlopen(f"{self.url}/health", timeout=10) as answer:  # noqa: S310 - our own
            assert answer.read() == b'{"status":"ok"}'
        return time.monotonic() - started

    def connect(self, request: bytes, *, client: int = 0, is_slow_reader: bool = False) -> socket.socket:
        """Send a request.

        Args:
            client: each number has an address of its own, since a proxy limits the connections of one.
            is_slow_reader: let the kernels of both sides keep only a few kilobytes of an answer. The server's
                keeps 20 packets, which have 64 KiB within a machine.
        """
        connection = socket.socket()
        connection.settimeout(30)
        if is_slow_reader:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
        connection.bind((f"127.0.{client // 250}.{client % 250 + 1}", 0))
        connection.connect(("127.0.0.1", self.port))
        connection.sendall(request)
        return connection

    def kill(self) -> None:
        if self._nginx:
            self._nginx.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def read_all(connection: socket.socket) -> bytes:
    """Return everything until the server closes the connection."""
    with connection:
        return b"".join(iter(lambda: connection.recv(65_536), b""))
