"""The web server of production against clients that send or read slowly, send too much, or nothing.

Tests with the mark ``nginx`` hold behind a proxy too: `make test-nginx`.
"""

from __future__ import annotations

import contextlib
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tenantadmin.run.serve import web
from tests.faults.web_server import NGINX, Server, read_all

pytestmark = pytest.mark.slow

DECLARED = b"POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"
CHUNKED = b"POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.kill()


@pytest.mark.nginx
def test_a_thousand_slow_bodies_do_not_delay_other_clients(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        slow = [
            stack.enter_context(server.connect(CHUNKED if number % 2 else DECLARED, client=number))
            for number in range(1000)
        ]
        others = [server.health() for _ in range(50)]
        # 64 such connections once kept all others waiting until they closed.
        assert sorted(others)[47] < 5
        for connection in slow:
            answer = read_all(connection)
            if NGINX:
                # It closes the connection without an answer.
                assert answer == b""
                continue
            assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
            assert b'{"error":"request_timeout",' in answer
            assert b"\r\nconnection: close\r\n" in answer


@pytest.mark.nginx
def test_a_hundred_slow_readers_hold_no_thread(server: Server) -> None:
    """They are more than the threads are, and what they ask for is more than the kernel keeps."""
    with urllib.request.urlopen(server.url) as answer:  # noqa: S310 - our own
        contract = answer.read()
    assert len(contract) > 1 << 20
    request = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with contextlib.ExitStack() as stack:
        slow = [
            stack.enter_context(server.connect(request, client=number, is_slow_reader=True))
            for number in range(100)
        ]
        for connection in slow:
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        for _ in range(20):
            server.health()
        for connection in slow:
            assert read_all(connection).endswith(b"\r\n\r\n" + contract)


@pytest.mark.nginx
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_client_that_sends_its_whole_body_first_reads_the_refusal(server: Server, is_chunked: bool) -> None:
    for _ in range(20):
        body = [b" " * 100_000] * 50
        request = urllib.request.Request(  # noqa: S310 - our own
            f"{server.url}/oauth/token",
            data=iter(body) if is_chunked else b"".join(body),
            headers={"Content-Type": "application/json"},
        )
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=30)  # noqa: S310 - our own
        with caught.value as answer:
            assert answer.code == 413
            assert b'"payload_too_large"' in answer.read()


def test_an_endless_body_is_cut_off(server: Server) -> None:
    sent = 0
    with (
        server.connect(DECLARED.replace(b"1000", b"1000000000")) as connection,
        contextlib.suppress(ConnectionError),
    ):
        while sent < 100 << 20:
            connection.sendall(b" " * 65_536)
            sent += 65_536
    # Besides what is drained, the kernel's buffers on both sides.
    assert 8 << 20 < sent < 40 << 20


def test_headers_have_a_deadline(server: Server) -> None:
    started = time.monotonic()
    # Both wait at the same time.
    for connection in [server.connect(b""), server.connect(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n")]:
        # This side waits for twice the deadline at most.
        assert read_all(connection) == b""
        assert time.monotonic() - started > web.HEADER_SECONDS - 1


@pytest.mark.parametrize(
    "headers",
    [b"".join(b"X-%d: 1\r\n" % number for number in range(200)), b"X: " + b"a" * 200_000 + b"\r\n"],
    ids=["many", "long"],
)
def test_headers_have_a_limit(server: Server, headers: bytes) -> None:
    connection = server.connect(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers)
    answer = connection.recv(1000)
    connection.close()
    assert answer.startswith(b"HTTP/1.1 431 ")


def test_a_request_under_way_is_answered_before_the_server_ends() -> None:
    server = Server()
    try:
        connection = server.connect(DECLARED.replace(b"1000", b"2"))
        # Each worker has a socket of its own: both have accepted what came before.
        for _ in range(20):
            server.health()
        server.process.send_signal(signal.SIGTERM)
        wait_until_refused(server)
        connection.sendall(b"{")
        assert read_all(connection).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert server.process.wait(web.STOP_SECONDS) == 0
    finally:
        server.kill()


def wait_until_refused(server: Server) -> None:
    """Wait until the server accepts no connection any more."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        # A worker that ends resets what it has not accepted, while the other still listens.
        with contextlib.suppress(ConnectionResetError):
            try:
                server.connect(b"").close()
            except ConnectionRefusedError:
                return
        time.sleep(0.05)
    raise AssertionError("the server still accepts connections")
